-- One row for each of the last hundred lines of a rank up to its first error, or to its last line where it had none.
-- Question: What led up to the first error of a rank?
-- Example:
--     SELECT before, time, level, path, line, message FROM lead_up WHERE rank = 6 AND before <= 5
CREATE VIEW lead_up AS
WITH ends AS (
    SELECT l.rank, l.attempt, coalesce(e.path, l.path) AS path, coalesce(e.line, l.line) AS line
    FROM last_lines l
    LEFT JOIN first_errors e ON e.rank = l.rank AND e.attempt = l.attempt
),
stretches AS (
    SELECT e.rank, e.attempt, s.source_id, e.line - 99 AS low, e.line AS high FROM ends e JOIN sources s ON s.path = e.path
)
SELECT
    t.rank AS rank, -- global rank
    t.attempt AS attempt, -- restart number
    t.high - l.line AS before, -- how many lines of the log before that line; 0 is the line itself
    l.time AS time, -- on the job's aligned clock
    l.level AS level, -- level, NULL where the line carries none
    l.path AS path, -- the source
    l.line AS line, -- the line
    l.message AS message, -- its text
    l.rank AS writer -- global rank that wrote it: another one in a merged log
FROM stretches t
JOIN lines l ON l.source_id = t.source_id AND l.line BETWEEN t.low AND t.high
ORDER BY t.attempt, t.rank, l.line;

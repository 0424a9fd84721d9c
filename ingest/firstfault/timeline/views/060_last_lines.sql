-- One row for each rank and attempt: the last line that it wrote.
-- Question: What was the last thing that each rank said?
-- Example:
--     SELECT rank, host, time, path, line, message FROM last_lines ORDER BY time, rank
CREATE VIEW last_lines AS
WITH ends AS (
    SELECT rank, coalesce(attempt, 0) AS attempt, source_id, max(line) AS line, count(*) AS lines
    FROM line_rows
    WHERE rank IS NOT NULL
    GROUP BY ALL
)
SELECT
    e.rank AS rank, -- global rank
    e.attempt AS attempt, -- restart number
    l.host AS host, -- host that wrote the line
    l.time AS time, -- on the job's aligned clock
    l.path AS path, -- the source
    l.line AS line, -- the line
    l.level AS level, -- its level, NULL where it carries none
    l.message AS message, -- its text
    sum(e.lines) OVER (PARTITION BY e.rank, e.attempt)::BIGINT AS lines -- lines that the rank wrote in this attempt
FROM ends e
JOIN lines l ON l.source_id = e.source_id AND l.line = e.line
QUALIFY row_number() OVER (PARTITION BY e.rank, e.attempt ORDER BY l.time DESC NULLS LAST, l.path, l.line DESC) = 1
ORDER BY e.attempt, e.rank;

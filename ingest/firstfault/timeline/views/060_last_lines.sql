-- One row for each rank and attempt: the last line that it wrote.
-- Question: What was the last thing that each rank said?
-- Example:
--     SELECT rank, host, time, path, line, message FROM last_lines ORDER BY time, rank
CREATE VIEW last_lines AS
WITH ends AS (
    SELECT
        rank, coalesce(attempt, 0) AS attempt, source_id, max(line) AS line, count(*) AS lines,
        arg_max(rowid, line) AS row_number
    FROM line_rows
    WHERE rank IS NOT NULL
    GROUP BY ALL
),
lasts AS (
    SELECT
        e.rank, e.attempt, e.row_number, l.host, l.time, l.path, l.line, l.level,
        sum(e.lines) OVER (PARTITION BY e.rank, e.attempt)::BIGINT AS lines
    FROM ends e
    JOIN lines l ON l.source_id = e.source_id AND l.line = e.line
    QUALIFY row_number() OVER (PARTITION BY e.rank, e.attempt ORDER BY l.time DESC NULLS LAST, l.path, l.line DESC) = 1
)
SELECT
    e.rank AS rank, -- global rank
    e.attempt AS attempt, -- restart number
    e.host AS host, -- host that wrote the line
    e.time AS time, -- on the job's aligned clock
    e.path AS path, -- the source
    e.line AS line, -- the line
    e.level AS level, -- its level, NULL where it carries none
    l.message AS message, -- its text
    e.lines AS lines -- lines that the rank wrote in this attempt
FROM lasts e
JOIN line_rows l ON l.rowid = e.row_number
ORDER BY e.attempt, e.rank;

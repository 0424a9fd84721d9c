-- One row for each rank and attempt: the first line of it, or about it, that says that something went wrong.
-- An error that the rank survived counts too: the verdict knows better, this view is complete.
-- Question: What was the first error of each rank?
-- Example:
--     SELECT rank, host, time, path, line, entry, message FROM first_errors ORDER BY time, rank
CREATE VIEW first_errors AS
WITH ends AS (
    SELECT rank, coalesce(attempt, 0) AS attempt, source_id, min(line) AS line, arg_min(rowid, line) AS row_number
    FROM line_rows
    WHERE level IN ('ERROR', 'FATAL') AND rank IS NOT NULL
    GROUP BY ALL
),
by_level AS (
    SELECT e.rank, e.attempt, l.host, l.time, l.path, l.line, l.level, l.entry, l.class, e.row_number
    FROM ends e
    JOIN lines l ON l.source_id = e.source_id AND l.line = e.line
    QUALIFY row_number() OVER (PARTITION BY e.rank, e.attempt ORDER BY l.time, l.path, l.line) = 1
),
told AS (
    SELECT b.* EXCLUDE (row_number), l.message, 2 AS source FROM by_level b JOIN line_rows l ON l.rowid = b.row_number
    UNION ALL
    SELECT rank, coalesce(attempt, 0), host, time, path, line, level, entry, class, text, 1
    FROM faults
    WHERE rank IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY rank, coalesce(attempt, 0) ORDER BY time, path, line, signal_id) = 1
)
SELECT
    t.rank AS rank, -- global rank
    t.attempt AS attempt, -- restart number
    t.host AS host, -- host that wrote the line
    t.time AS time, -- on the job's aligned clock
    t.path AS path, -- the source
    t.line AS line, -- the line
    t.level AS level, -- its level, NULL where it carries none
    t.entry AS entry, -- catalog entry that it matches, or NULL
    t.class AS class, -- failure class of that entry, or NULL
    t.message AS message -- its text
FROM told t
QUALIFY row_number() OVER (PARTITION BY t.rank, t.attempt ORDER BY t.time, t.path, t.line, t.source) = 1
ORDER BY t.attempt, t.time, t.rank;

-- One row for each rank and attempt: the first line of it, or about it, that says that something went wrong.
-- An error that the rank survived counts too: the verdict knows better, this view is complete.
-- Question: What was the first error of each rank?
-- Example:
--     SELECT rank, host, time, path, line, entry, message FROM first_errors ORDER BY time, rank
CREATE VIEW first_errors AS
WITH told AS (
    SELECT rank, coalesce(attempt, 0) AS attempt, source_id, min(line) AS line
    FROM line_rows
    WHERE level IN ('ERROR', 'FATAL') AND rank IS NOT NULL
    GROUP BY ALL
    UNION ALL
    SELECT rank, coalesce(attempt, 0) AS attempt, source_id, min(line) AS line
    FROM faults
    WHERE rank IS NOT NULL
    GROUP BY ALL
),
firsts AS (
    SELECT rank, attempt, source_id, min(line) AS line FROM told GROUP BY ALL
)
SELECT
    f.rank AS rank, -- global rank
    f.attempt AS attempt, -- restart number
    l.host AS host, -- host that wrote the line
    l.time AS time, -- on the job's aligned clock
    l.path AS path, -- the source
    l.line AS line, -- the line
    l.level AS level, -- its level, NULL where it carries none
    l.entry AS entry, -- catalog entry that it matches best, or NULL
    l.class AS class, -- failure class of that entry, or NULL
    l.message AS message -- its text
FROM firsts f
JOIN lines l ON l.source_id = f.source_id AND l.line = f.line
QUALIFY row_number() OVER (PARTITION BY f.rank, f.attempt ORDER BY l.time, l.path, l.line) = 1
ORDER BY f.attempt, l.time, f.rank;

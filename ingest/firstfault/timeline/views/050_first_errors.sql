-- One row for each rank and attempt: the first line of it, or about it, that says that something went wrong.
-- An error that the rank survived counts too: the verdict knows better, this view is complete.
-- Question: What was the first error of each rank?
-- Example:
--     SELECT rank, host, time, path, line, entry, message FROM first_errors ORDER BY time, rank
CREATE VIEW first_errors AS
WITH ends AS (
    SELECT rank, coalesce(attempt, 0) AS attempt, source_id, arg_min(rowid, line) AS row_number
    FROM line_rows
    WHERE level IN ('ERROR', 'FATAL') AND rank IS NOT NULL
    GROUP BY ALL
),
firsts AS (
    SELECT
        e.rank, e.attempt, e.source_id, l.line, l.near_ns, l.utc_offset_s, l.host, l.level, l.entry, l.class, l.message
    FROM ends e
    JOIN line_rows l ON l.rowid = e.row_number
),
told AS (
    SELECT
        e.rank, e.attempt, e.host, s.path, e.line, e.level, e.entry, e.class, e.message, 2 AS source,
        CASE
            WHEN c.clock IS NULL AND starts_with(s.clock, 'boot:') THEN NULL
            ELSE make_timestamptz(
                (e.near_ns - 1000000000::BIGINT * coalesce(e.utc_offset_s, c.utc_offset_s, s.utc_offset_s, 0) + coalesce(c.shift_ns, 0))
                // 1000)
        END AS time
    FROM firsts e
    JOIN sources s ON s.source_id = e.source_id
    LEFT JOIN clocks c
        ON c.clock = s.clock
        AND (c.source_id IS NULL OR c.source_id = e.source_id)
        AND e.line >= c.from_line
        AND (c.until_line IS NULL OR e.line < c.until_line)
    UNION ALL BY NAME
    SELECT
        rank, coalesce(attempt, 0) AS attempt, host, path, line, level, entry, class, text AS message, 1 AS source, time
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

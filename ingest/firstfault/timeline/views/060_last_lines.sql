-- One row for each rank and attempt: the last line that it wrote.
-- Question: What was the last thing that each rank said?
-- Example:
--     SELECT rank, host, time, path, line, message FROM last_lines ORDER BY time, rank
CREATE VIEW last_lines AS
WITH ends AS (
    SELECT rank, coalesce(attempt, 0) AS attempt, source_id, count(*) AS lines, arg_max(rowid, line) AS row_number
    FROM line_rows
    WHERE rank IS NOT NULL
    GROUP BY ALL
),
lasts AS (
    SELECT
        e.rank, e.attempt, e.source_id, e.lines, l.line, l.near_ns, l.utc_offset_s, l.host, l.level, l.message
    FROM ends e
    JOIN line_rows l ON l.rowid = e.row_number
),
placed AS (
    SELECT
        e.rank, e.attempt, e.lines, e.host, e.line, e.level, e.message, s.path,
        CASE
            WHEN c.clock IS NULL AND starts_with(s.clock, 'boot:') THEN NULL
            ELSE make_timestamptz(
                (e.near_ns - 1000000000::BIGINT * coalesce(e.utc_offset_s, c.utc_offset_s, s.utc_offset_s, 0) + coalesce(c.shift_ns, 0))
                // 1000)
        END AS time
    FROM lasts e
    JOIN sources s ON s.source_id = e.source_id
    LEFT JOIN clocks c
        ON c.clock = s.clock
        AND (c.source_id IS NULL OR c.source_id = e.source_id)
        AND e.line >= c.from_line
        AND (c.until_line IS NULL OR e.line < c.until_line)
)
SELECT
    p.rank AS rank, -- global rank
    p.attempt AS attempt, -- restart number
    p.host AS host, -- host that wrote the line
    p.time AS time, -- on the job's aligned clock
    p.path AS path, -- the source
    p.line AS line, -- the line
    p.level AS level, -- its level, NULL where it carries none
    p.message AS message, -- its text
    sum(p.lines) OVER (PARTITION BY p.rank, p.attempt)::BIGINT AS lines -- lines that the rank wrote in this attempt
FROM placed p
QUALIFY row_number() OVER (PARTITION BY p.rank, p.attempt ORDER BY p.time DESC NULLS LAST, p.path, p.line DESC) = 1
ORDER BY p.attempt, p.rank;

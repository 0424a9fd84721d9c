-- One row for each stretch of ten seconds or more in which a rank wrote nothing with a stamp, its last words included.
-- Where `unstamped` is not 0 the rank may have gone on writing: a traceback carries no stamps.
-- Question: Where are the gaps, and who fell silent for good?
-- Example:
--     SELECT rank, host, seconds, for_good, unstamped, since, path, line FROM silences
--     ORDER BY unstamped, seconds DESC, rank LIMIT 5
CREATE VIEW silences AS
WITH parts AS (
    SELECT
        rank, coalesce(attempt, 0) AS attempt, source_id, epoch_us(time) // 10000000 AS slot,
        min(time) AS first_time, max(time) AS last_time,
        max(line) FILTER (WHERE stamp IS NOT NULL) AS line,
        count(*) FILTER (WHERE stamp IS NULL) AS unstamped
    FROM lines
    WHERE rank IS NOT NULL AND time IS NOT NULL
    GROUP BY ALL
),
slots AS (
    SELECT
        rank, attempt, slot, min(first_time) AS first_time, max(last_time) AS last_time,
        arg_max(source_id, (last_time, source_id)) AS source_id, arg_max(line, (last_time, source_id)) AS line,
        sum(unstamped)::BIGINT AS unstamped
    FROM parts
    GROUP BY ALL
),
ends AS (
    SELECT attempt, max(time) AS end_time
    FROM (
        SELECT attempt, last_time AS time FROM slots
        UNION ALL
        SELECT coalesce(l.attempt, 0), l.time
        FROM lines l
        JOIN sources s ON s.source_id = l.source_id
        WHERE l.rank IS NULL AND s.kind IN ('launcher', 'node', 'job')
    )
    GROUP BY attempt
),
gaps AS (
    SELECT
        *,
        lead(first_time) OVER (PARTITION BY rank, attempt ORDER BY slot) AS next_time
    FROM slots
)
SELECT
    g.rank AS rank, -- global rank
    g.attempt AS attempt, -- restart number
    p.host AS host, -- its host
    g.last_time AS since, -- its last stamped line before, on the job's aligned clock
    g.next_time AS until, -- its next stamped line, NULL where none came
    round(epoch(coalesce(g.next_time, e.end_time) - g.last_time), 3) AS seconds, -- how long; for good: to the last line of any rank or launcher
    g.next_time IS NULL AS for_good, -- TRUE where nothing with a stamp followed
    g.unstamped AS unstamped, -- lines without a stamp that stand with it; these may have come during the silence
    s.path AS path, -- source of the line before
    g.line AS line -- that line
FROM gaps g
JOIN ends e ON e.attempt = g.attempt
LEFT JOIN sources s ON s.source_id = g.source_id
LEFT JOIN placement p ON p.rank = g.rank AND p.attempt = g.attempt
WHERE epoch(coalesce(g.next_time, e.end_time) - g.last_time) >= 10
ORDER BY g.attempt, g.last_time, g.rank;

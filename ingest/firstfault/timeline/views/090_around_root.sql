-- One row for each line that the hosts of the root wrote within a minute of the moment at which it began.
-- Question: What happened on that host one minute either side of the root?
-- Example:
--     SELECT seconds, host, rank, level, path, line, message FROM around_root WHERE abs(seconds) <= 5
CREATE VIEW around_root AS
WITH root AS (
    SELECT began, unnest(hosts) AS host FROM verdicts WHERE attempt IS NULL AND began IS NOT NULL
),
stretches AS (
    SELECT r.began, r.host, l.source_id, min(l.line) AS low, max(l.line) AS high
    FROM root r
    JOIN lines l ON l.host = r.host AND l.time BETWEEN r.began - INTERVAL 1 MINUTE AND r.began + INTERVAL 1 MINUTE
    GROUP BY ALL
)
SELECT
    round(date_diff('millisecond', t.began, l.time) / 1000.0, 3) AS seconds, -- seconds after the moment of the root
    l.time AS time, -- on the job's aligned clock
    l.host AS host, -- host
    l.rank AS rank, -- global rank, NULL where the line has none
    l.level AS level, -- level, NULL where the line carries none
    l.path AS path, -- the source
    l.line AS line, -- the line
    l.message AS message, -- its text
    l.entry AS entry, -- catalog entry, or NULL
    l.pid AS pid -- process that wrote it
FROM stretches t
JOIN lines l ON l.source_id = t.source_id AND l.line BETWEEN t.low AND t.high
WHERE l.host = t.host AND l.time BETWEEN t.began - INTERVAL 1 MINUTE AND t.began + INTERVAL 1 MINUTE
ORDER BY l.time, l.path, l.line;

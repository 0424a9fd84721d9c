-- One row for each rank that had an error: when its first came, after the moment of the root.
-- Question: In what order did the ranks fail after the root?
-- Example:
--     SELECT position, rank, host, seconds, entry, message FROM spread
CREATE VIEW spread AS
SELECT
    row_number() OVER (ORDER BY f.time, f.rank) AS position, -- 1 complained first
    f.rank AS rank, -- global rank
    f.host AS host, -- host that wrote the line
    round(date_diff('millisecond', v.began, f.time) / 1000.0, 3) AS seconds, -- seconds after the moment of the root
    list_contains(v.ranks, f.rank) AS root, -- TRUE for the ranks that failed first
    f.entry AS entry, -- catalog entry, or NULL
    f.time AS time, -- on the job's aligned clock
    f.path AS path, -- the source
    f.line AS line, -- the line
    f.message AS message -- its text
FROM first_errors f
JOIN verdicts v ON v.attempt IS NULL
WHERE f.attempt = coalesce(
    (SELECT min(a.attempt) FROM verdicts a WHERE a.attempt IS NOT NULL AND a.class IS NOT DISTINCT FROM v.class), 0)
ORDER BY f.time, f.rank;

-- One row for each line that shows how far a rank had come, with its path and its aligned time.
-- Question: When did rank 3 reach each step?
-- Example:
--     SELECT step, time, path, line FROM steps WHERE rank = 3 ORDER BY time, line
CREATE VIEW steps AS
SELECT
    p.rank AS rank, -- global rank, NULL where one file speaks for the whole job
    p.host AS host, -- host of the line
    coalesce(p.attempt, 0) AS attempt, -- restart number
    p.epoch AS epoch, -- epoch, NULL where not named
    p.step AS step, -- step, iteration or batch number
    CASE
        WHEN c.clock IS NULL AND starts_with(s.clock, 'boot:') THEN NULL
        ELSE make_timestamptz(
            (p.stamp_ns - 1000000000::BIGINT * coalesce(c.utc_offset_s, s.utc_offset_s, 0) + coalesce(c.shift_ns, 0))
            // 1000)
    END AS time, -- on the job's aligned clock; inherited where the line has no stamp
    p.stamp_own AS stamped, -- TRUE where the line itself carries the stamp
    s.path AS path, -- the source
    p.line AS line, -- the line
    p.source_id AS source_id -- the source, by number
FROM progress p
JOIN sources s ON s.source_id = p.source_id
LEFT JOIN clocks c
    ON c.clock = s.clock
    AND (c.source_id IS NULL OR c.source_id = p.source_id)
    AND p.line >= c.from_line
    AND (c.until_line IS NULL OR p.line < c.until_line);

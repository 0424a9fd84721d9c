-- One row for each line of each log, in its place and on the job's aligned clock.
-- stamp: as printed. time: own or inherited stamp, less the zone that the line, the clock or the source states, plus the clock's shift.
CREATE VIEW lines AS
SELECT
    s.path AS path,
    l.line AS line,
    CASE WHEN l.stamp_kind NOT IN ('monotonic', 'relative') THEN make_timestamp(l.stamp_ns // 1000) END AS stamp,
    CASE
        WHEN c.clock IS NULL AND starts_with(s.clock, 'boot:') THEN NULL
        ELSE make_timestamptz(
            (l.near_ns - 1000000000::BIGINT * coalesce(l.utc_offset_s, c.utc_offset_s, s.utc_offset_s, 0) + coalesce(c.shift_ns, 0))
            // 1000)
    END AS time,
    l.level AS level,
    l.host AS host,
    l.rank AS rank,
    l.local_rank AS local_rank,
    l.pid AS pid,
    l.gpu AS gpu,
    l.message AS message,
    l.entry AS entry,
    l.class AS class,
    l.attempt AS attempt,
    l.record AS record,
    l.format AS format,
    l.byte_offset AS byte_offset,
    l.byte_length AS byte_length,
    l.source_id AS source_id
FROM line_rows l
JOIN sources s ON s.source_id = l.source_id
LEFT JOIN clocks c
    ON c.clock = s.clock
    AND (c.source_id IS NULL OR c.source_id = l.source_id)
    AND l.line >= c.from_line
    AND (c.until_line IS NULL OR l.line < c.until_line);

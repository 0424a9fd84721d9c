-- One row for each line of each log, in its place and on the job's aligned clock.
-- stamp: as printed. time: own or inherited stamp, less the zone that the line, the clock or the source states, plus the clock's shift.
-- Question: What was printed around a moment?
-- Example:
--     SELECT time, host, rank, path, line, message FROM lines
--     WHERE time BETWEEN TIMESTAMPTZ '2026-11-30 16:14:41.7Z' AND TIMESTAMPTZ '2026-11-30 16:14:56.5Z'
--         AND rank IN (1, 6) ORDER BY time, path, line LIMIT 8
CREATE VIEW lines AS
SELECT
    s.path AS path, -- the source, as cited in evidence
    l.line AS line, -- 1-based line number, counted by '\n'
    CASE WHEN l.stamp_kind NOT IN ('monotonic', 'relative') THEN make_timestamp(l.stamp_ns // 1000) END AS stamp, -- the time as printed, without its zone, NULL where the line has none
    CASE
        WHEN c.clock IS NULL AND starts_with(s.clock, 'boot:') THEN NULL
        ELSE make_timestamptz(
            (l.near_ns - 1000000000::BIGINT * coalesce(l.utc_offset_s, c.utc_offset_s, s.utc_offset_s, 0) + coalesce(c.shift_ns, 0))
            // 1000)
    END AS time, -- on the job's aligned clock; inherited from the neighbours where the line has no stamp
    l.level AS level, -- TRACE, DEBUG, INFO, WARN, ERROR, FATAL, NULL where the line carries none
    l.host AS host, -- host that wrote the line
    l.rank AS rank, -- global rank that wrote it, NULL where nothing guarantees it
    l.local_rank AS local_rank, -- local rank that wrote it
    l.pid AS pid, -- process that wrote it
    l.gpu AS gpu, -- CUDA ordinal as that process sees it
    l.message AS message, -- what remains when all wrappers and headers are peeled, NULL only where the text stays in the log
    l.entry AS entry, -- catalog entry that the line matches best, or NULL
    l.class AS class, -- failure class of that entry, or NULL
    l.attempt AS attempt, -- restart number that the line belongs to
    l.record AS record, -- line number of the record's first line (a traceback, a table), NULL where a line stands alone
    l.format AS format, -- format of the innermost header that was recognised, NULL for plain text
    l.byte_offset AS byte_offset, -- offset of the line's first byte in the decompressed source
    l.byte_length AS byte_length, -- length in bytes without the line end
    l.source_id AS source_id -- the source, by number
FROM line_rows l
JOIN sources s ON s.source_id = l.source_id
LEFT JOIN clocks c
    ON c.clock = s.clock
    AND (c.source_id IS NULL OR c.source_id = l.source_id)
    AND l.line >= c.from_line
    AND (c.until_line IS NULL OR l.line < c.until_line);

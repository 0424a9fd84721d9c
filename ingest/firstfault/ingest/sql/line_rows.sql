-- Lines of one part with their entry and their record.
INSERT INTO line_rows BY NAME
SELECT
    l.source_id, l.line, l.byte_offset, l.byte_length, l.stamp_ns, l.stamp_kind, l.stamp_res_ns, l.utc_offset_s,
    l.collect_ns, l.near_ns, l.level, l.host, l.rank, l.local_rank, l.attempt, l.pid, l.gpu, l.format, r.record,
    CASE WHEN l.kept OR m.entry IS NOT NULL OR r.record IS NOT NULL THEN l.message END AS message,
    m.entry, m.class
FROM part_lines l
LEFT JOIN part_entries m ON m.source_id = l.source_id AND m.line = l.line
LEFT JOIN part_records r ON r.source_id = l.source_id AND r.line = l.line
ORDER BY l.source_id, l.line;

-- Progress with its place and time.
INSERT INTO progress BY NAME
SELECT
    coalesce(p.rank, l.rank, s.rank) AS rank,
    coalesce(l.host, s.host) AS host,
    coalesce(l.attempt, s.attempt) AS attempt,
    p.source_id, p.line, p.step, p.epoch,
    coalesce(p.stamp_ns, l.stamp_ns, l.near_ns) AS stamp_ns,
    p.stamp_ns IS NOT NULL OR l.stamp_ns IS NOT NULL AS stamp_own
FROM part_progress p
JOIN sources s ON s.source_id = p.source_id
LEFT JOIN line_rows l ON l.source_id = p.source_id AND l.line = p.line
ORDER BY p.source_id, p.line;

-- Progress with its place and time.
INSERT INTO progress BY NAME
SELECT
    coalesce(p.rank, p.line_rank, s.rank) AS rank,
    coalesce(p.line_host, s.host) AS host,
    coalesce(p.line_attempt, s.attempt) AS attempt,
    p.source_id, p.line, p.step, p.epoch,
    coalesce(p.stamp_ns, p.line_stamp_ns, p.line_near_ns) AS stamp_ns,
    p.stamp_ns IS NOT NULL OR p.line_stamp_ns IS NOT NULL AS stamp_own
FROM part_progress p
JOIN sources s ON s.source_id = p.source_id;

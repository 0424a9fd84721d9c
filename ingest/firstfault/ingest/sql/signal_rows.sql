-- Signals with their place and time: of the record where it says so, else of the line, else of the source.
CREATE TEMP TABLE found_signals AS
SELECT
    g.signal_id, g.source_id, g.line, g.first_line, g.last_line, g.entry, g.fact, g.event, g.class, g.role, g.weak,
    coalesce(g.level, l.level) AS level,
    coalesce(g.rank, l.rank, s.rank) AS rank,
    coalesce(g.local_rank, l.local_rank, s.local_rank) AS local_rank,
    coalesce(g.host, l.host, s.host) AS host,
    coalesce(g.attempt, l.attempt, s.attempt) AS attempt,
    coalesce(g.pid, l.pid) AS pid,
    coalesce(g.gpu, l.gpu) AS gpu,
    coalesce(g.stamp_ns, l.stamp_ns, l.near_ns) AS stamp_ns,
    CASE WHEN g.stamp_ns IS NOT NULL THEN g.stamp_kind ELSE coalesce(l.stamp_kind, l.near_kind) END AS stamp_kind,
    CASE
        WHEN g.stamp_ns IS NOT NULL THEN g.stamp_res_ns
        WHEN l.stamp_ns IS NOT NULL THEN l.stamp_res_ns
        ELSE greatest(l.near_res_ns, abs(l.next_ns - l.near_ns))
    END AS stamp_res_ns,
    g.stamp_ns IS NOT NULL OR l.stamp_ns IS NOT NULL AS stamp_own,
    CASE WHEN g.stamp_ns IS NOT NULL THEN g.utc_offset_s ELSE coalesce(l.utc_offset_s, l.near_offset_s) END AS utc_offset_s,
    g.text,
    map_from_entries(g.captures) AS captures
FROM part_signals g
JOIN sources s ON s.source_id = g.source_id
LEFT JOIN part_places l ON l.source_id = g.source_id AND l.line = g.line;

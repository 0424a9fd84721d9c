-- Signals of a rank in a log of many ranks that the rank's own log has too: the same words with the same stamp.
CREATE TEMP TABLE echoes AS
SELECT DISTINCT m.signal_id, m.source_id, o.source_id AS own_id
FROM found_signals m
JOIN sources sm ON sm.source_id = m.source_id AND sm.rank IS NULL
JOIN sources so ON so.rank = m.rank AND so.source_id <> m.source_id
JOIN found_signals o
    ON o.source_id = so.source_id
    AND o.rank = m.rank
    AND o.text = m.text
    AND o.event IS NOT DISTINCT FROM m.event
    AND o.entry IS NOT DISTINCT FROM m.entry
    AND o.fact IS NOT DISTINCT FROM m.fact
    AND o.attempt IS NOT DISTINCT FROM m.attempt
    AND o.stamp_own = m.stamp_own
    AND (NOT m.stamp_own OR o.stamp_ns = m.stamp_ns)
WHERE m.event NOT IN ('agent-report', 'agent-kill', 'exit');

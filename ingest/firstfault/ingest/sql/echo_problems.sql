-- One problem for each log whose signals another log of the same rank has too.
INSERT INTO problems
SELECT e.source_id, s.path, min(g.line), 'duplicate', 'info', count(DISTINCT e.signal_id),
    'also in the logs of the ranks themselves, such as ' || min(o.path) || ', which speak for both'
FROM echoes e
JOIN sources s ON s.source_id = e.source_id
JOIN sources o ON o.source_id = e.own_id
JOIN found_signals g ON g.signal_id = e.signal_id
GROUP BY e.source_id, s.path
ORDER BY e.source_id;

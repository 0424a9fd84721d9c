-- One row for each source: what it was taken for, why, and how much of it was understood.
CREATE VIEW coverage AS
SELECT
    s.path AS path,
    s.kind AS kind,
    s.format AS format,
    s.why AS why,
    s.lines AS lines,
    s.understood AS understood,
    (SELECT count(*) FROM signal_rows g WHERE g.source_id = s.source_id) AS signals,
    (SELECT count(*) FROM problems p WHERE p.source_id = s.source_id) AS problems
FROM sources s
ORDER BY s.source_id;

-- One row for each source: what it was taken for, why, and how much of it was understood.
-- Question: What was read, and what was each file taken for?
-- Example:
--     SELECT path, kind, format, lines, understood, signals, problems FROM coverage ORDER BY path LIMIT 5
CREATE VIEW coverage AS
SELECT
    s.path AS path, -- the source
    s.kind AS kind, -- who wrote it: rank, launcher, scheduler, kernel, ...
    s.format AS format, -- line format that most of its lines follow, or the dump reader that took it
    s.why AS why, -- what decided kind and format, in words
    s.lines AS lines, -- number of lines
    s.understood AS understood, -- lines whose header some format explained
    (SELECT count(*) FROM signal_rows g WHERE g.source_id = s.source_id) AS signals, -- signals found in it
    (SELECT count(*) FROM problems p WHERE p.source_id = s.source_id) AS problems -- kinds of things that were not understood in it
FROM sources s
ORDER BY s.source_id;

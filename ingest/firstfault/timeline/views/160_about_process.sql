-- One row for each line that a process wrote with its id, or in which a launcher, scheduler or kernel speaks of it.
-- Question: What do the logs say about this process id?
-- Example:
--     SELECT time, how, host, rank, path, line, text FROM about_process WHERE pid = 30846 ORDER BY time, path, line
CREATE VIEW about_process AS
SELECT
    l.pid AS pid, -- process id; the same number on two hosts is two processes
    l.host AS host, -- host
    'wrote' AS how, -- wrote, ended (a launcher or scheduler says so or does it), killed (for its memory), is (a rank)
    l.rank AS rank, -- global rank, or NULL
    l.time AS time, -- on the job's aligned clock
    l.path AS path, -- the source
    l.line AS line, -- the line
    l.message AS text -- its text
FROM lines l
WHERE l.pid IS NOT NULL
UNION ALL
SELECT g.child_pid, g.host, 'ended', g.rank, g.time, g.path, g.line, g.text FROM signals g WHERE g.child_pid IS NOT NULL
UNION ALL
SELECT g.victim_pid, g.host, 'killed', g.rank, g.time, g.path, g.line, g.text FROM signals g WHERE g.victim_pid IS NOT NULL
UNION ALL
SELECT i.pid, i.host, 'is', i.rank, NULL, s.path, i.line, i.how
FROM identities i JOIN sources s ON s.source_id = i.source_id
WHERE i.pid IS NOT NULL;

-- One row for each statement of a launcher or scheduler about how a process ended, or that it was told to end.
-- Question: How did each process end?
-- Example:
--     SELECT time, host, rank, child_pid, exitcode, signal, event, text FROM exits
CREATE VIEW exits AS
SELECT
    g.attempt AS attempt, -- restart number
    g.time AS time, -- on the job's aligned clock
    g.host AS host, -- host
    coalesce(g.rank, p.rank) AS rank, -- global rank, by the statement or by its process id
    coalesce(g.child_pid, g.victim_pid, p.pid) AS child_pid, -- process that ended
    g.exitcode AS exitcode, -- exit status; torchelastic writes the number of a signal as negative
    g.signal AS signal, -- signal, as printed
    g.event AS event, -- exit, agent-kill (the launcher ended it), agent-report (a summary), oom-kill, sched-action
    g.entry AS entry, -- catalog entry, or NULL
    g.path AS path, -- the source
    g.line AS line, -- the line
    g.text AS text -- its text
FROM signals g
LEFT JOIN placement p
    ON p.attempt = coalesce(g.attempt, 0) AND p.host = g.host AND p.pid = coalesce(g.child_pid, g.victim_pid)
WHERE g.event IN ('exit', 'agent-kill', 'agent-report', 'oom-kill', 'sched-action')
ORDER BY g.time, g.path, g.line, g.signal_id;

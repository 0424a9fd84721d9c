-- One row for each record of a kernel, driver, GPU, link, file system or scheduler that speaks of a fault or an action.
-- Question: What do the machines and the scheduler say?
-- Example:
--     SELECT time, host, event, entry, xid, bus_id, text FROM machine_faults
CREATE VIEW machine_faults AS
SELECT
    g.time AS time, -- on the job's aligned clock
    g.host AS host, -- host that it is about
    g.event AS event, -- node-fault, oom-kill, link-fault, io-stall, io-error, node-lost, sched-action, slow
    g.entry AS entry, -- catalog entry, or NULL
    g.class AS class, -- failure class of the entry
    g.role AS role, -- initiating, collateral, ambiguous
    g.xid AS xid, -- Xid of the NVIDIA driver, or NULL
    g.bus_id AS bus_id, -- PCI address, or NULL
    g.victim_pid AS victim_pid, -- process that was killed, or NULL
    g.source_kind AS source_kind, -- who wrote the log
    g.path AS path, -- the source
    g.line AS line, -- the line
    g.text AS text -- its text
FROM signals g
WHERE g.event IN ('node-fault', 'oom-kill', 'link-fault', 'io-stall', 'io-error', 'node-lost', 'sched-action', 'slow')
    AND g.role IS DISTINCT FROM 'context'
ORDER BY g.time, g.path, g.line, g.signal_id;

-- One row for each place where a log says that something went wrong: signals less the facts and the harmless ones.
-- Question: Everything that went wrong, in the order of time?
-- Example:
--     SELECT time, host, rank, event, entry, role, text FROM faults
--     WHERE role IS DISTINCT FROM 'collateral' ORDER BY time, path, line LIMIT 10
CREATE VIEW faults AS
SELECT
    g.attempt AS attempt, -- restart number
    g.time AS time, -- on the job's aligned clock
    g.host AS host, -- host that wrote it, or that it is about
    g.rank AS rank, -- global rank that wrote it, or that it is about
    g.event AS event, -- kind of event
    g.entry AS entry, -- catalog entry, NULL for errors that no entry knows
    g.class AS class, -- failure class of the entry
    g.role AS role, -- initiating, collateral, ambiguous; NULL for errors that no entry knows
    g.source_kind AS source_kind, -- who wrote the log: rank, launcher, scheduler, kernel, ...
    g.path AS path, -- the source
    g.line AS line, -- the line
    g.text AS text, -- the peeled message, at most 4096 characters
    g.pid AS pid, -- process that wrote it
    g.gpu AS gpu, -- CUDA ordinal as that process sees it
    g.level AS level, -- level of the line, NULL where it carries none
    g.source_id AS source_id, -- the source, by number
    g.signal_id AS signal_id -- the signal, by number
FROM signals g
WHERE g.event NOT IN ('identity', 'progress', 'completion', 'checkpoint', 'start', 'sync', 'clock', 'phase', 'noise', 'coll-state')
    AND g.role IS DISTINCT FROM 'context'
ORDER BY g.time, g.path, g.line, g.signal_id;

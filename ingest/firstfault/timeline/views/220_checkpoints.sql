-- One row for each line about a checkpoint.
-- Question: Which checkpoints were written, and where can the job resume?
-- Example:
--     SELECT time, rank, fact, step, checkpoint, path, line FROM checkpoints ORDER BY time DESC, path, line LIMIT 3
CREATE VIEW checkpoints AS
SELECT
    g.attempt AS attempt, -- restart number
    g.time AS time, -- on the job's aligned clock
    g.rank AS rank, -- global rank that says it
    g.host AS host, -- its host
    g.fact AS fact, -- what it says, such as checkpoint-begin, checkpoint-end, checkpoint-resume
    g.step AS step, -- step, where the line names it
    map_extract(g.captures, 'path')[1] AS checkpoint, -- where it lies, where the line names it
    g.path AS path, -- the source
    g.line AS line, -- the line
    g.text AS text -- its text
FROM signals g
WHERE g.event = 'checkpoint' OR g.fact = 'checkpoint-resume'
ORDER BY g.time, g.path, g.line, g.signal_id;

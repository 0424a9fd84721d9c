-- One row for each member of a collective that others waited in and that it was not seen to wait in.
-- Question: Who is behind in which collective?
-- Example:
--     SELECT process_group, seq, op, rank, host, state, behind_by, waiting FROM behind
CREATE VIEW behind AS
WITH members AS (
    SELECT
        c.*,
        max(c.last_enqueued) OVER w AS furthest,
        count(*) FILTER (WHERE c.state = 'waiting') OVER w AS waiting,
        mode(c.op) FILTER (WHERE c.state = 'waiting') OVER w AS waited_op
    FROM collectives c
    WINDOW w AS (PARTITION BY c.attempt, c.process_group, c.seq)
)
SELECT
    m.attempt AS attempt, -- restart number
    m.process_group AS process_group, -- name of the process group, 'world' for the default group
    m.seq AS seq, -- sequence number of the operation, NULL where the witness names none
    m.waited_op AS op, -- what the others wait in
    m.rank AS rank, -- global rank that is behind, or of which nothing is known
    p.host AS host, -- its host
    m.state AS state, -- absent (never enqueued it), odd (called something else), passed (completed it), unknown
    m.op AS own_op, -- what it called itself, NULL where unknown
    m.last_enqueued AS last_enqueued, -- its counter, NULL where unknown
    m.last_completed AS last_completed, -- its counter, NULL where unknown
    m.furthest - m.last_enqueued AS behind_by, -- how many operations it is behind the furthest, NULL where unknown
    m.waiting AS waiting, -- how many ranks wait in it
    s.path AS path, -- source of the line that shows it, NULL where none does
    m.line AS line -- that line
FROM members m
LEFT JOIN sources s ON s.source_id = m.source_id
LEFT JOIN placement p ON p.rank = m.rank AND p.attempt = m.attempt
WHERE m.state <> 'waiting' AND m.waiting > 0
ORDER BY m.attempt, m.process_group, m.seq, m.state, m.rank;

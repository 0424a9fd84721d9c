-- One row for each rank and attempt: where it ran, by what most statements say.
-- Question: Which rank ran where?
-- Example:
--     SELECT rank, host, local_rank, pid, gpu, bus_id FROM placement ORDER BY rank
CREATE VIEW placement AS
WITH attempts AS (
    SELECT DISTINCT coalesce(attempt, 0) AS attempt FROM identities
    UNION
    SELECT DISTINCT coalesce(attempt, 0) AS attempt FROM sources
),
told AS (
    SELECT rank, attempt, host, local_rank, node_rank, pid, gpu, bus_id FROM identities WHERE rank IS NOT NULL
    UNION ALL
    SELECT rank, attempt, host, local_rank, node_rank, NULL, NULL, NULL FROM sources WHERE rank IS NOT NULL
)
SELECT
    t.rank AS rank, -- global rank
    a.attempt AS attempt, -- restart number
    mode(t.host ORDER BY t.host) AS host, -- host
    mode(t.local_rank ORDER BY t.local_rank) AS local_rank, -- local rank
    mode(t.node_rank ORDER BY t.node_rank) AS node_rank, -- rank of the node
    mode(t.pid ORDER BY t.pid) AS pid, -- process id
    mode(t.gpu ORDER BY t.gpu) AS gpu, -- CUDA ordinal as the process sees it
    mode(t.bus_id ORDER BY t.bus_id) AS bus_id, -- PCI address of its GPU
    count(DISTINCT t.host) > 1 AS contradicted -- TRUE where statements name several hosts: see identities
FROM told t
JOIN attempts a ON t.attempt IS NULL OR t.attempt = a.attempt
GROUP BY t.rank, a.attempt
ORDER BY a.attempt, t.rank;

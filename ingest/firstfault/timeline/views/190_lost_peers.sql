-- One row for each line in which a rank lost the connection to a peer or to the store.
-- Question: Who lost the connection to whom?
-- Example:
--     SELECT time, rank, host, peer, peer_name, entry, text FROM lost_peers
CREATE VIEW lost_peers AS
WITH addresses AS (
    SELECT address, min(host) AS host FROM identities WHERE address IS NOT NULL AND host IS NOT NULL
    GROUP BY address HAVING count(DISTINCT host) = 1
)
SELECT
    g.attempt AS attempt, -- restart number
    g.time AS time, -- on the job's aligned clock
    g.rank AS rank, -- global rank that lost it
    g.host AS host, -- its host
    g.peer AS peer, -- the other end as printed, NULL where the line names none
    g.peer_port AS peer_port, -- its port
    coalesce(g.peer_host, a.host) AS peer_name, -- host of that address, where the logs tell it
    g.peer_rank AS peer_rank, -- its rank, where the line names it
    g.event AS event, -- peer-loss, store-lost
    g.entry AS entry, -- catalog entry, or NULL
    g.path AS path, -- the source
    g.line AS line, -- the line
    g.text AS text -- its text
FROM signals g
LEFT JOIN addresses a ON a.address = g.peer
WHERE g.event IN ('peer-loss', 'store-lost')
ORDER BY g.time, g.path, g.line, g.signal_id;

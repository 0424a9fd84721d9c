-- One row for each statement about who a rank is, with the line that makes it; contradictions stand side by side.
CREATE TABLE identities (
    rank          INTEGER,   -- global rank, NULL where the statement joins other names (a pod and its node, an address and its host)
    attempt       INTEGER,   -- restart number, NULL where it holds for all
    host          VARCHAR,   -- host name
    local_rank    INTEGER,   -- local rank
    node_rank     INTEGER,   -- rank of the node
    pid           BIGINT,    -- process id
    gpu           INTEGER,   -- CUDA ordinal as the process sees it
    bus_id        VARCHAR,   -- PCI address as 'dddd:bb:dd.f', lower case
    address       VARCHAR,   -- IP address
    pod           VARCHAR,   -- pod name
    alias         VARCHAR,   -- another name of the host (fully qualified, instance id, node behind a pod)
    comm          VARCHAR,   -- communicator id where a communicator rank is named
    comm_rank     INTEGER,   -- rank inside that communicator
    comm_size     INTEGER,   -- number of ranks of that communicator
    world_size    INTEGER,   -- number of ranks of the job, where stated
    source_id     INTEGER,   -- the source that says it
    line          BIGINT,    -- the line that says it
    how           VARCHAR    -- what kind of statement: path, start-line, comm-init, launcher-table, rendezvous, prefix, pods, override, ...
);

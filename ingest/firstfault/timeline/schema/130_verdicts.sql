-- One row for the answer of the whole job (attempt NULL) and one for each attempt; filled by the correlate stage.
-- Question: What failed first?
-- Example:
--     SELECT verdict, class, component, ranks, hosts, began, confidence FROM verdicts WHERE attempt IS NULL
CREATE TABLE verdicts (
    attempt       INTEGER,   -- restart number, NULL for the job as a whole
    verdict       VARCHAR,   -- identified, undetermined, no-failure
    class         VARCHAR,   -- failure class of the root, NULL where there is none
    entry         VARCHAR,   -- catalog entry of the root, or NULL
    title         VARCHAR,   -- the failure in words, NULL where there is none
    component     VARCHAR,   -- rank, gpu, host, network, storage, scheduler, launcher, job; NULL where there is no root
    ranks         INTEGER[], -- global ranks that failed first, empty where none is blamed
    hosts         VARCHAR[], -- hosts where it began
    gpus          VARCHAR[], -- GPUs as 'host/ordinal'
    began         TIMESTAMPTZ, -- when it began, on the job's aligned clock
    confidence    DOUBLE,    -- probability that class, ranks and hosts are all right; NULL for a single attempt
    missing_fact  VARCHAR,   -- the one fact that would settle it, NULL where it is settled
    next_action   VARCHAR,   -- what to do next; NULL for a single attempt
    summary       VARCHAR    -- the verdict in a sentence; NULL for a single attempt
);

-- One row for each candidate root, the likeliest first; filled by the correlate stage.
-- Question: What else could it have been, and what speaks against it?
-- Example:
--     SELECT position, class, ranks, hosts, round(probability, 3) AS probability, explained_by, for_it, against_it
--     FROM hypotheses ORDER BY attempt, position LIMIT 5
CREATE TABLE hypotheses (
    attempt       INTEGER,   -- restart number
    position      INTEGER,   -- 1 is the likeliest
    class         VARCHAR,   -- failure class
    entry         VARCHAR,   -- catalog entry, or NULL
    rule          VARCHAR,   -- kind of evidence that it rests on
    ranks         INTEGER[], -- global ranks, empty where none is blamed
    hosts         VARCHAR[], -- hosts
    base          DOUBLE,    -- worth of its own evidence
    score         DOUBLE,    -- base and how much of the collateral it explains
    probability   DOUBLE,    -- weight against the others and against 'none of them'
    explained_by  VARCHAR,   -- what it follows from, NULL where nothing explains it
    for_it        VARCHAR[], -- what speaks for it
    against_it    VARCHAR[]  -- what speaks against it
);

-- One row for each vertex of the causal graph; filled by the correlate stage.
CREATE TABLE nodes (
    attempt       INTEGER,   -- restart number
    node          VARCHAR,   -- key of the vertex, such as 'rank:3' or 'collective:ALLREDUCE #413 of world'
    kind          VARCHAR,   -- rank, collective, launcher, host, machine, scheduler, job
    label         VARCHAR,   -- name for people
    root          BOOLEAN    -- TRUE where the failure began
);

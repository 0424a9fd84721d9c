-- One row for each member of each collective that somebody waited in; filled by the correlate stage.
CREATE TABLE collectives (
    attempt       INTEGER,   -- restart number
    process_group VARCHAR,   -- name of the process group, 'world' for the default group
    seq           BIGINT,    -- sequence number of the operation in the group, NULL where the witness names none (gloo)
    rank          INTEGER,   -- global rank of the member
    state         VARCHAR,   -- waiting, absent (never enqueued it), passed (completed it), odd (called something else), unknown
    op            VARCHAR,   -- operation and sizes that this member called, NULL where unknown
    last_enqueued BIGINT,    -- its counter, NULL where unknown
    last_completed BIGINT,   -- its counter, NULL where unknown
    source_id     INTEGER,   -- source of the line that shows it
    line          BIGINT     -- that line
);

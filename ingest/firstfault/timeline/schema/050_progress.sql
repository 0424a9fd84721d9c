-- One row for each line that shows how far a rank had come.
CREATE TABLE progress (
    rank          INTEGER,   -- global rank, NULL where one file speaks for the whole job
    host          VARCHAR,   -- host of the line
    attempt       INTEGER,   -- restart number
    source_id     INTEGER,   -- the source
    line          BIGINT,    -- the line
    step          BIGINT,    -- step, iteration or batch number
    epoch         BIGINT,    -- epoch, NULL where not named
    stamp_ns      BIGINT,    -- as in signal_rows
    stamp_own     BOOLEAN    -- TRUE where the line itself carries the stamp
);

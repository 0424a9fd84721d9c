-- One row for each line of each source, as read; the view `lines` gives them their place and their aligned time.
CREATE TABLE line_rows (
    source_id     INTEGER,   -- the source
    line          BIGINT,    -- 1-based line number, counted by '\n'
    byte_offset   BIGINT,    -- offset of the line's first byte in the decompressed source
    byte_length   BIGINT,    -- length in bytes without the line end; a text longer than the bound is cut, this is not
    stamp_ns      BIGINT,    -- time as printed in nanoseconds since 1970-01-01 of that wall clock (since boot where monotonic), NULL where the line has none
    stamp_kind    VARCHAR,   -- offset (zone known), full (no zone), no-year, time-only, monotonic, relative, NULL where no stamp
    stamp_res_ns  BIGINT,    -- resolution of the stamp in nanoseconds (1000000000 for whole seconds, also for c10 stamps)
    utc_offset_s  INTEGER,   -- seconds east of UTC that the line itself states, else NULL
    collect_ns    BIGINT,    -- time that a collector put in front (CRI, kubectl, syslog) in UTC nanoseconds where the line has both, else NULL
    near_ns       BIGINT,    -- stamp of the closest stamped line before it in the same source (after it at the top of the file), NULL where none
    level         VARCHAR,   -- TRACE, DEBUG, INFO, WARN, ERROR, FATAL, NULL where the line carries none
    host          VARCHAR,   -- host that wrote the line, as the line or its source says
    rank          INTEGER,   -- global rank that wrote it, NULL where nothing guarantees it
    local_rank    INTEGER,   -- local rank that wrote it
    attempt       INTEGER,   -- restart number that the line belongs to
    pid           BIGINT,    -- process that wrote it
    gpu           INTEGER,   -- CUDA ordinal as that process sees it
    format        VARCHAR,   -- format of the innermost header that was recognised, NULL for plain text
    record        BIGINT,    -- line number of the record's first line (a traceback, a frame block, a summary table), NULL where a line stands alone
    message       VARCHAR USING COMPRESSION zstd, -- what remains when all wrappers and headers are peeled, NULL only where the text stays in the log
    entry         VARCHAR,   -- catalog entry that the line matches best, or NULL
    class         VARCHAR    -- failure class of that entry, or NULL
);

-- One row for each difference from the run that went well; filled where `diagnose --healthy` names one.
-- Question: What is new against the healthy run?
-- Example:
--     SELECT kind, change, name, now, past, ranks, path, line, text FROM changes
--     WHERE change IN ('new', 'more', 'slower') ORDER BY position
CREATE TABLE changes (
    position      INTEGER,   -- order: lines first, errors among them first
    kind          VARCHAR,   -- line, timing, version, topology, environment
    change        VARCHAR,   -- of lines: new, gone, more, fewer; of timings: slower, faster; of settings: different
    name          VARCHAR,   -- the line with numbers masked, or the name of the timing or setting
    now           VARCHAR,   -- lines of it, seconds (median over the ranks), or the value; NULL where this run does not show it
    past          VARCHAR,   -- the same of the healthy run
    ranks         INTEGER[], -- global ranks that print it, or that are slow
    level         VARCHAR,   -- of lines: the level
    entry         VARCHAR,   -- of lines: the catalog entry, or NULL
    path          VARCHAR,   -- of lines: where the first one stands; of lines that are gone, in the healthy run
    line          BIGINT,    -- that line
    text          VARCHAR    -- its text, at most 300 characters
);

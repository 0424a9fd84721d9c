-- One row for each place where a line says something that the diagnosis can use: a catalog entry, a fact, an exception, a record of a dump.
CREATE TABLE signal_rows (
    signal_id     BIGINT,    -- number of the signal, in the order of source and line
    source_id     INTEGER,   -- the source
    line          BIGINT,    -- the line that says it (of a traceback: the line with the exception)
    first_line    BIGINT,    -- first line of the record it belongs to (of a traceback: its head)
    last_line     BIGINT,    -- last line of that record
    entry         VARCHAR,   -- catalog entry, NULL for facts and unclassified errors
    fact          VARCHAR,   -- id of the fact pattern, NULL for catalog entries
    event         VARCHAR,   -- kind of event (see firstfault.catalog.model.Event)
    class         VARCHAR,   -- failure class, NULL for facts
    role          VARCHAR,   -- initiating, collateral, ambiguous, context; NULL for facts
    weak          BOOLEAN,   -- TRUE where the text is too general to open a diagnosis alone
    level         VARCHAR,   -- level of the line
    rank          INTEGER,   -- global rank that wrote it, or that the record is about (error file, launcher table, flight recorder)
    local_rank    INTEGER,   -- local rank likewise
    host          VARCHAR,   -- host that wrote it, or that it is about
    attempt       INTEGER,   -- restart number
    pid           BIGINT,    -- process that wrote it
    gpu           INTEGER,   -- CUDA ordinal as that process sees it
    stamp_ns      BIGINT,    -- as in line_rows, inherited from the closest stamped line before it where the line has none
    stamp_kind    VARCHAR,   -- as in line_rows
    stamp_res_ns  BIGINT,    -- as in line_rows; where the stamp is inherited the gap to the next stamped line widens it
    stamp_own     BOOLEAN,   -- TRUE where the line itself carries the stamp
    utc_offset_s  INTEGER,   -- as in line_rows
    text          VARCHAR,   -- the peeled message, at most 4096 characters
    captures      MAP(VARCHAR, VARCHAR) -- what the pattern took out, by the names of docs/captures.md
);

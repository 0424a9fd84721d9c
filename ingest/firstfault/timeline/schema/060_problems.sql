-- One row for each kind of thing that was not understood, not read or put right on the way.
-- Question: What was not understood or not read?
-- Example:
--     SELECT severity, kind, path, line, count, detail FROM problems ORDER BY severity, kind, path, line
CREATE TABLE problems (
    source_id     INTEGER,   -- the source, NULL where none was opened
    path          VARCHAR,   -- the path
    line          BIGINT,    -- first line that shows it, NULL where the whole file
    kind          VARCHAR,   -- unreadable, binary, not-a-file, undecodable, cut-line, unknown-format, truncated-archive, bomb, link, changed-while-reading, ...
    severity      VARCHAR,   -- info, notice, data-loss, error
    count         BIGINT,    -- how many lines, bytes or members
    detail        VARCHAR    -- what, why, and what to do
);

-- One row for each line that the verdict rests on, the strongest first; filled by the correlate stage.
-- Question: Which lines show it?
-- Example:
--     SELECT position, path, line, rank, why, text FROM evidence ORDER BY position
CREATE TABLE evidence (
    position      INTEGER,   -- 1 is the strongest
    path          VARCHAR,   -- the source, as in sources.path
    line          BIGINT,    -- the line
    rank          INTEGER,   -- global rank that it is about, NULL where none
    host          VARCHAR,   -- host that it is about, or NULL
    time          TIMESTAMPTZ, -- its time on the job's aligned clock, NULL where it has none
    text          VARCHAR,   -- its text, at most 500 characters
    why           VARCHAR    -- why it counts
);

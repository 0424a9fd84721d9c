-- One row for each log, dump or status file that was read: what it is taken for, and why.
CREATE TABLE sources (
    source_id     INTEGER,   -- number of the source, in the order of its path; parts of a rotated log from the oldest on
    path          VARCHAR,   -- path as cited in evidence: relative to the given PATH, with '/', members of archives behind 'ARCHIVE!/'
    kind          VARCHAR,   -- who wrote it: rank, launcher, node, job, scheduler, kernel, kubelet, events, raylet, flight-recorder, error-file, stacks, ras, gpu-state, status, text, binary
    format        VARCHAR,   -- name of the line format that most of its lines follow, or of the dump reader that took it
    why           VARCHAR,   -- what decided kind and format, in words
    host          VARCHAR,   -- host that the whole file belongs to, NULL where lines differ or nothing says it
    node_rank     INTEGER,   -- rank of the node (group rank of torchelastic, node index of Slurm, pod index), NULL where unknown
    rank          INTEGER,   -- global rank that the whole file belongs to, NULL where lines differ or nothing says it
    local_rank    INTEGER,   -- local rank that the whole file belongs to, NULL likewise
    attempt       INTEGER,   -- restart number that the whole file belongs to (0 is the first), NULL where lines differ
    stream        VARCHAR,   -- stdout, stderr or NULL
    clock         VARCHAR,   -- name of the clock domain that stamped the lines, such as 'wall:gpu-a01' or 'boot:gpu-a01'
    utc_offset_s  INTEGER,   -- seconds east of UTC of the stamps, where the file itself or --tz fixes it, else NULL
    bytes         BIGINT,    -- size of the decompressed content in bytes
    lines         BIGINT,    -- number of lines, counted by '\n'
    understood    BIGINT,    -- number of lines whose header some format explained
    text_stored   BOOLEAN,   -- TRUE where the text of every line is in this file, FALSE where it stays in the log
    fingerprint   VARCHAR    -- size, time and content prefix, to see whether the file changed
);

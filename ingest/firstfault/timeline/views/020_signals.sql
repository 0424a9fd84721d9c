-- One row for each signal, with its path, its aligned time and the captures that most questions ask for as typed columns.
-- Question: Which collectives timed out, on which rank, after how long?
-- Example:
--     SELECT time, rank, pg_desc, seq, op, elapsed_ms, timeout_ms, text FROM signals
--     WHERE event = 'coll-timeout' ORDER BY time, path, line LIMIT 5
CREATE VIEW signals AS
SELECT
    g.signal_id AS signal_id, -- number of the signal, in the order of source and line
    g.source_id AS source_id, -- the source
    g.line AS line, -- the line that says it (of a traceback: the line with the exception)
    g.first_line AS first_line, -- first line of the record it belongs to (of a traceback: its head)
    g.last_line AS last_line, -- last line of that record
    g.entry AS entry, -- catalog entry, NULL for facts and unclassified errors
    g.fact AS fact, -- id of the fact pattern, NULL for catalog entries
    g.event AS event, -- kind of event (see firstfault.catalog.model.Event)
    g.class AS class, -- failure class, NULL for facts
    g.role AS role, -- initiating, collateral, ambiguous, context; NULL for facts
    g.weak AS weak, -- TRUE where the text is too general to open a diagnosis alone
    g.level AS level, -- level of the line
    g.rank AS rank, -- global rank that wrote it, or that the record is about (error file, launcher table, flight recorder)
    g.local_rank AS local_rank, -- local rank likewise
    g.host AS host, -- host that wrote it, or that it is about
    g.attempt AS attempt, -- restart number
    g.pid AS pid, -- process that wrote it
    g.gpu AS gpu, -- CUDA ordinal as that process sees it
    g.stamp_ns AS stamp_ns, -- as in line_rows, inherited from the closest stamped line before it where the line has none
    g.stamp_kind AS stamp_kind, -- as in line_rows
    g.stamp_res_ns AS stamp_res_ns, -- as in line_rows; where the stamp is inherited the gap to the next stamped line widens it
    g.stamp_own AS stamp_own, -- TRUE where the line itself carries the stamp
    g.utc_offset_s AS utc_offset_s, -- as in line_rows
    g.text AS text, -- the peeled message, at most 4096 characters
    g.captures AS captures, -- what the pattern took out, by the names of docs/captures.md
    s.path AS path, -- the source, as cited in evidence
    s.kind AS source_kind, -- who wrote the log: rank, launcher, scheduler, kernel, ...
    map_extract(g.captures, 'peer')[1] AS peer, -- the other end of a connection, as printed
    try_cast(map_extract(g.captures, 'peer_port')[1] AS INTEGER) AS peer_port, -- its port
    try_cast(map_extract(g.captures, 'peer_rank')[1] AS INTEGER) AS peer_rank, -- its global rank
    map_extract(g.captures, 'peer_host')[1] AS peer_host, -- its host
    try_cast(map_extract(g.captures, 'seq')[1] AS BIGINT) AS seq, -- sequence number of the collective
    map_extract(g.captures, 'op')[1] AS op, -- operation of the collective
    map_extract(g.captures, 'pg_id')[1] AS pg_id, -- number of the process group
    map_extract(g.captures, 'pg_name')[1] AS pg_name, -- name of the process group
    map_extract(g.captures, 'pg_desc')[1] AS pg_desc, -- description of the process group
    try_cast(map_extract(g.captures, 'pg_rank')[1] AS INTEGER) AS pg_rank, -- rank inside the process group, not the global one
    try_cast(map_extract(g.captures, 'last_enqueued')[1] AS BIGINT) AS last_enqueued, -- counter of this rank: last collective it enqueued
    try_cast(map_extract(g.captures, 'last_completed')[1] AS BIGINT) AS last_completed, -- counter of this rank: last collective it completed
    try_cast(map_extract(g.captures, 'numel_in')[1] AS BIGINT) AS numel_in, -- elements that go in
    try_cast(map_extract(g.captures, 'numel_out')[1] AS BIGINT) AS numel_out, -- elements that come out
    try_cast(map_extract(g.captures, 'timeout_ms')[1] AS BIGINT) AS timeout_ms, -- limit in milliseconds
    try_cast(map_extract(g.captures, 'elapsed_ms')[1] AS BIGINT) AS elapsed_ms, -- time waited in milliseconds
    try_cast(map_extract(g.captures, 'exitcode')[1] AS INTEGER) AS exitcode, -- exit status; torchelastic writes the number of a signal as negative
    map_extract(g.captures, 'signal')[1] AS signal, -- signal, as printed
    try_cast(map_extract(g.captures, 'signal_no')[1] AS INTEGER) AS signal_no, -- number of the signal
    try_cast(map_extract(g.captures, 'child_pid')[1] AS BIGINT) AS child_pid, -- process of a launcher's child
    try_cast(map_extract(g.captures, 'victim_pid')[1] AS BIGINT) AS victim_pid, -- process that was killed
    try_cast(map_extract(g.captures, 'task')[1] AS INTEGER) AS task, -- Slurm task number, not always the rank
    map_extract(g.captures, 'bus_id')[1] AS bus_id, -- PCI address of the device
    try_cast(map_extract(g.captures, 'xid')[1] AS INTEGER) AS xid, -- Xid of the NVIDIA driver
    try_cast(map_extract(g.captures, 'step')[1] AS BIGINT) AS step, -- step that the line names
    map_extract(g.captures, 'exception')[1] AS exception, -- type of the exception, with its module
    map_extract(g.captures, 'src_file')[1] AS src_file, -- file of the last frame in the user's own code
    try_cast(map_extract(g.captures, 'src_line')[1] AS INTEGER) AS src_line, -- line in that file
    map_extract(g.captures, 'function')[1] AS function, -- function of that frame
    try_cast(map_extract(g.captures, 'cause_line')[1] AS BIGINT) AS cause_line, -- of a chained exception: the line of the first one
    CASE
        WHEN c.clock IS NULL AND starts_with(s.clock, 'boot:') THEN NULL
        ELSE make_timestamptz(
            (g.stamp_ns - 1000000000::BIGINT * coalesce(g.utc_offset_s, c.utc_offset_s, s.utc_offset_s, 0) + coalesce(c.shift_ns, 0))
            // 1000)
    END AS time -- on the job's aligned clock; inherited where the line has no stamp, see stamp_own
FROM signal_rows g
JOIN sources s ON s.source_id = g.source_id
LEFT JOIN clocks c
    ON c.clock = s.clock
    AND (c.source_id IS NULL OR c.source_id = g.source_id)
    AND g.line >= c.from_line
    AND (c.until_line IS NULL OR g.line < c.until_line);

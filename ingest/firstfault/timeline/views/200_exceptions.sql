-- One row for each exception type and place in the code, folded over ranks.
-- Question: Which exceptions were raised where in the code?
-- Example:
--     SELECT exception, src_file, src_line, function, ranks, count, first_time, example FROM exceptions
CREATE VIEW exceptions AS
SELECT
    g.exception AS exception, -- type, with its module
    g.src_file AS src_file, -- file of the last frame in the user's own code
    g.src_line AS src_line, -- line in that file
    g.function AS function, -- function of that frame
    count(*) AS count, -- how often
    count(DISTINCT g.rank) AS ranks, -- on how many ranks
    min(g.rank) AS lowest_rank, -- the lowest of them
    min(g.time) AS first_time, -- when first, on the job's aligned clock
    arg_min(g.path, (g.time IS NULL, g.time, g.signal_id)) AS path, -- source of the first
    arg_min(g.line, (g.time IS NULL, g.time, g.signal_id)) AS line, -- its line
    arg_min(g.text, (g.time IS NULL, g.time, g.signal_id)) AS example -- its text
FROM signals g
WHERE g.exception IS NOT NULL
GROUP BY g.exception, g.src_file, g.src_line, g.function
ORDER BY min(g.time), g.exception, g.src_file, g.src_line, g.function;

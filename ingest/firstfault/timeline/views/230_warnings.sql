-- One row for each kind of line with level WARN, ERROR or FATAL: texts that differ in numbers only are one kind.
-- Question: Which warnings came, and which are rare?
-- Example:
--     SELECT level, template, count, ranks, first_time FROM warnings ORDER BY ranks, count, template LIMIT 8
CREATE VIEW warnings AS
SELECT
    level AS level, -- WARN, ERROR or FATAL
    left(regexp_replace(left(message, 300), '0x[0-9a-fA-F]+|[0-9]+', '#', 'g'), 160) AS template, -- the text with numbers masked
    count(*) AS count, -- how often
    count(DISTINCT rank) AS ranks, -- on how many ranks
    min(rank) AS lowest_rank, -- the lowest of them
    count(DISTINCT host) AS hosts, -- on how many hosts
    min(time) AS first_time, -- when first, on the job's aligned clock
    max(time) AS last_time, -- when last
    any_value(entry) AS entry, -- catalog entry of such a line, or NULL
    arg_min(path, (time IS NULL, time, path, line)) AS path, -- source of the first
    arg_min(line, (time IS NULL, time, path, line)) AS line -- its line
FROM lines
WHERE level IN ('WARN', 'ERROR', 'FATAL')
GROUP BY 1, 2
ORDER BY count(*) DESC, 1, 2;

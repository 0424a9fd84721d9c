-- One row for each kind of line with level WARN, ERROR or FATAL: texts that differ in numbers only are one kind.
-- Question: Which warnings came, and which are rare?
-- Example:
--     SELECT level, template, count, ranks, first_time FROM warnings ORDER BY ranks, count, template LIMIT 8
CREATE VIEW warnings AS
WITH by_log AS (
    SELECT
        level, left(regexp_replace(left(message, 300), '0x[0-9a-fA-F]+|[0-9]+', '#', 'g'), 160) AS template,
        source_id, path, rank, host, count(*) AS count, min(time) AS first_time, max(time) AS last_time,
        min(line) AS line, min(entry) AS entry
    FROM lines
    WHERE level IN ('WARN', 'ERROR', 'FATAL')
    GROUP BY ALL
)
SELECT
    level AS level, -- WARN, ERROR or FATAL
    template AS template, -- the text with numbers masked
    sum(count)::BIGINT AS count, -- how often
    count(DISTINCT rank) AS ranks, -- on how many ranks
    min(rank) AS lowest_rank, -- the lowest of them
    count(DISTINCT host) AS hosts, -- on how many hosts
    min(first_time) AS first_time, -- when first, on the job's aligned clock
    max(last_time) AS last_time, -- when last
    min(entry) AS entry, -- catalog entry of such a line, or NULL
    arg_min(path, (first_time IS NULL, first_time, path, line)) AS path, -- source of the first
    arg_min(line, (first_time IS NULL, first_time, path, line)) AS line -- its line
FROM by_log
GROUP BY level, template
ORDER BY sum(count) DESC, level, template;

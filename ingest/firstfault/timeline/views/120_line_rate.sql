-- One row for each rank and minute in which it wrote something.
-- Question: How many lines did each rank write in each minute?
-- Example:
--     SELECT minute, rank, lines, errors FROM line_rate WHERE rank IN (0, 1) ORDER BY minute, rank
CREATE VIEW line_rate AS
SELECT
    rank AS rank, -- global rank, NULL for lines of launchers, kernels and other logs without a rank
    date_trunc('minute', time) AS minute, -- on the job's aligned clock
    count(*) AS lines, -- lines of that minute
    count(*) FILTER (WHERE level IN ('ERROR', 'FATAL')) AS errors, -- of these, with level ERROR or FATAL
    count(*) FILTER (WHERE level = 'WARN') AS warnings -- of these, with level WARN
FROM lines
GROUP BY ALL
ORDER BY date_trunc('minute', time), rank;

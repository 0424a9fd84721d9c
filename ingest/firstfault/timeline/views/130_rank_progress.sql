-- One row for each rank and attempt: how far it came, and how far that is behind the furthest.
-- Question: How far did each rank come?
-- Example:
--     SELECT rank, host, last_step, behind_by, time, seconds_per_step FROM rank_progress
CREATE VIEW rank_progress AS
WITH lasts AS (
    SELECT
        rank, attempt, arg_max(host, (epoch, step)) AS host,
        max(coalesce(epoch, 0)) AS last_epoch, max(step) AS last_step, min(step) AS first_step,
        max(time) AS time, min(time) AS first_time, count(DISTINCT step) AS steps,
        arg_max(path, (time, line)) AS path, arg_max(line, (time, line)) AS line
    FROM steps
    GROUP BY rank, attempt
)
SELECT
    l.rank AS rank, -- global rank, NULL where one file speaks for the whole job
    l.attempt AS attempt, -- restart number
    l.host AS host, -- host
    l.first_step AS first_step, -- lowest step seen
    l.last_step AS last_step, -- highest step seen
    max(l.last_step) OVER (PARTITION BY l.attempt) - l.last_step AS behind_by, -- steps behind the furthest rank
    l.time AS time, -- its last line of progress, on the job's aligned clock
    round(epoch(l.time - l.first_time) / nullif(l.steps - 1, 0), 3) AS seconds_per_step, -- mean over the attempt
    l.path AS path, -- source of that line
    l.line AS line -- that line
FROM lasts l
ORDER BY l.attempt, l.last_step, l.rank;

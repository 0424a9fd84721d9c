-- One row for each step of an attempt that several ranks reached: when the first and the last of them did.
-- Question: Which steps were slow, and which rank came last?
-- Example:
--     SELECT step, seconds, spread_seconds, slowest_rank, ranks FROM step_times ORDER BY seconds DESC, step LIMIT 5
CREATE VIEW step_times AS
WITH reached AS (
    SELECT attempt, epoch, step, rank, min(time) AS time FROM steps
    WHERE rank IS NOT NULL AND time IS NOT NULL
    GROUP BY ALL
),
folded AS (
    SELECT
        attempt, epoch, step, min(time) AS first_time, max(time) AS last_time, count(*) AS ranks,
        arg_min(rank, (time, rank)) AS fastest_rank, arg_max(rank, (time, -rank)) AS slowest_rank
    FROM reached
    GROUP BY ALL
)
SELECT
    attempt AS attempt, -- restart number
    epoch AS epoch, -- epoch, NULL where not named
    step AS step, -- the step
    first_time AS first_time, -- when the first rank showed it, on the job's aligned clock
    last_time AS last_time, -- when the last rank showed it
    round(epoch(first_time - lag(first_time) OVER (
        PARTITION BY attempt ORDER BY epoch, step)), 3) AS seconds, -- seconds since the step before it was first shown
    round(epoch(last_time - first_time), 3) AS spread_seconds, -- seconds from the first rank to the last; clocks have bounds
    fastest_rank AS fastest_rank, -- global rank that showed it first
    slowest_rank AS slowest_rank, -- global rank that showed it last
    ranks AS ranks -- how many ranks showed it
FROM folded
ORDER BY attempt, epoch, step;

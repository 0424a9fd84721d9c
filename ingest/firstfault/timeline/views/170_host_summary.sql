-- One row for each host: its ranks, lines, errors and clock.
-- Question: How do the hosts compare?
-- Example:
--     SELECT host, ranks, lines, errors, first_time, last_time, clock_offset_seconds FROM host_summary
CREATE VIEW host_summary AS
WITH counted AS (
    SELECT
        host, count(DISTINCT rank) AS ranks, count(*) AS lines,
        count(*) FILTER (WHERE level IN ('ERROR', 'FATAL')) AS errors,
        count(*) FILTER (WHERE level = 'WARN') AS warnings,
        min(time) AS first_time, max(time) AS last_time
    FROM lines
    WHERE host IS NOT NULL
    GROUP BY host
),
faulty AS (
    SELECT host, count(*) AS faults, count(*) FILTER (WHERE role = 'initiating') AS initiating
    FROM faults
    GROUP BY host
),
shifts AS (
    SELECT host, first(shift_ns ORDER BY clock DESC, from_line) AS shift_ns, first(uncertainty_ns ORDER BY clock DESC, from_line) AS uncertainty_ns
    FROM clocks
    WHERE starts_with(clock, 'wall:')
    GROUP BY host
)
SELECT
    c.host AS host, -- host
    c.ranks AS ranks, -- how many ranks wrote there
    c.lines AS lines, -- lines
    c.errors AS errors, -- lines with level ERROR or FATAL
    c.warnings AS warnings, -- lines with level WARN
    coalesce(f.faults, 0) AS faults, -- rows of faults
    coalesce(f.initiating, 0) AS initiating, -- of these, such as can begin a failure
    c.first_time AS first_time, -- first line, on the job's aligned clock
    c.last_time AS last_time, -- last line
    round(-s.shift_ns / 1e9, 3) AS clock_offset_seconds, -- its clock minus the reference, NULL where nothing links it
    round(s.uncertainty_ns / 1e9, 3) AS clock_bound_seconds -- half width of the bound
FROM counted c
LEFT JOIN faulty f ON f.host = c.host
LEFT JOIN shifts s ON s.host = c.host
ORDER BY c.host;

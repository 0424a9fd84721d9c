-- One row for each attempt: how long it ran, how far it came and how it ended.
-- Question: How many attempts were there, and how did each end?
-- Example:
--     SELECT attempt, started, ended, ranks, last_step, verdict, class FROM attempts
CREATE VIEW attempts AS
WITH spans AS (
    SELECT coalesce(attempt, 0) AS attempt, min(time) AS started, max(time) AS ended, count(DISTINCT rank) AS ranks, count(*) AS lines
    FROM lines
    WHERE rank IS NOT NULL
    GROUP BY ALL
),
furthest AS (
    SELECT attempt, max(step) AS last_step FROM steps GROUP BY attempt
)
SELECT
    s.attempt AS attempt, -- restart number, 0 is the first
    s.started AS started, -- first line of a rank, on the job's aligned clock
    s.ended AS ended, -- last line of a rank
    s.ranks AS ranks, -- how many ranks wrote something
    s.lines AS lines, -- lines of ranks
    f.last_step AS last_step, -- highest step that any rank showed, NULL where none did
    v.verdict AS verdict, -- identified, undetermined, no-failure; NULL before a diagnosis
    v.class AS class, -- failure class of its root, or NULL
    v.ranks AS root_ranks -- global ranks that failed first
FROM spans s
LEFT JOIN furthest f ON f.attempt = s.attempt
LEFT JOIN verdicts v ON v.attempt = s.attempt
ORDER BY s.attempt;

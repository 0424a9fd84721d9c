-- One row for each kind of error: a catalog entry, or a text in which numbers are masked where no entry knows it.
-- Question: Which errors are there, how often and on which ranks?
-- Example:
--     SELECT entry, role, count, ranks, hosts, first_time, example FROM folded_errors
CREATE VIEW folded_errors AS
WITH told AS (
    SELECT
        entry, class, role, event, rank, host, time, path, line, signal_id, text,
        CASE WHEN entry IS NULL THEN left(regexp_replace(left(text, 300), '[0-9]+', '#', 'g'), 120) END AS template
    FROM faults
),
runs AS (
    SELECT entry, class, role, event, template, rank, rank - row_number() OVER (
        PARTITION BY entry, class, role, event, template ORDER BY rank) AS run
    FROM (SELECT DISTINCT entry, class, role, event, template, rank FROM told WHERE rank IS NOT NULL)
),
spans AS (
    SELECT entry, class, role, event, template, min(rank) AS low,
        CASE WHEN max(rank) = min(rank) THEN min(rank)::VARCHAR ELSE min(rank) || '-' || max(rank) END AS span
    FROM runs
    GROUP BY entry, class, role, event, template, run
),
folded AS (
    SELECT entry, class, role, event, template, string_agg(span, ', ' ORDER BY low) AS ranks
    FROM spans
    GROUP BY ALL
)
SELECT
    t.entry AS entry, -- catalog entry, NULL for errors that no entry knows
    t.class AS class, -- failure class of the entry
    t.role AS role, -- initiating, collateral, ambiguous; NULL for errors that no entry knows
    t.event AS event, -- kind of event
    count(*) AS count, -- how often it was said
    any_value(f.ranks) AS ranks, -- global ranks that said it, or that it is about, such as '0-6, 8'
    count(DISTINCT t.rank) AS rank_count, -- how many ranks these are
    string_agg(DISTINCT t.host, ', ' ORDER BY t.host) AS hosts, -- hosts that said it, or that it is about
    min(t.time) AS first_time, -- when it was said first, on the job's aligned clock
    max(t.time) AS last_time, -- when it was said last
    arg_min(t.path, (t.time IS NULL, t.time, t.signal_id)) AS path, -- source of the first
    arg_min(t.line, (t.time IS NULL, t.time, t.signal_id)) AS line, -- its line
    arg_min(t.text, (t.time IS NULL, t.time, t.signal_id)) AS example -- its text
FROM told t
LEFT JOIN folded f
    ON f.entry IS NOT DISTINCT FROM t.entry
    AND f.class IS NOT DISTINCT FROM t.class
    AND f.role IS NOT DISTINCT FROM t.role
    AND f.event IS NOT DISTINCT FROM t.event
    AND f.template IS NOT DISTINCT FROM t.template
GROUP BY t.entry, t.class, t.role, t.event, t.template
ORDER BY count(*) DESC, t.entry, t.template, t.event;

-- One row for each edge of the causal graph and each line that shows it, from effect to cause; filled by the correlate stage.
-- Question: What followed from what?
-- Example:
--     SELECT DISTINCT cause, effect, rule, strength FROM edges ORDER BY cause, effect, rule LIMIT 10
CREATE TABLE edges (
    attempt       INTEGER,   -- restart number
    effect        VARCHAR,   -- key of the vertex that suffers
    cause         VARCHAR,   -- key of the vertex it follows from
    rule          VARCHAR,   -- id of the rule, as listed in docs/rules.md
    strength      VARCHAR,   -- certain, strong, weak
    source_id     INTEGER,   -- source of a line that shows it, NULL where no line does
    line          BIGINT     -- that line
);

-- One row for each table and view of this timeline and one for each of their columns: what they hold.
-- Question: What can be asked here?
-- Example:
--     SELECT relation, question, example FROM guide WHERE question IS NOT NULL ORDER BY position LIMIT 3
CREATE TABLE guide (
    position      INTEGER,   -- order of the questions, then of tables, views and their columns
    relation      VARCHAR,   -- name of the table or view
    field         VARCHAR,   -- name of the column, NULL for the table or view itself
    what          VARCHAR,   -- what a row or the column holds
    question      VARCHAR,   -- the question that the table or view answers, NULL where nobody would begin there
    example       VARCHAR    -- a query that answers it
);

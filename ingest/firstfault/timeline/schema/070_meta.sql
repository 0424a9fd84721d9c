-- One row for each fact about this timeline itself.
CREATE TABLE meta (
    key           VARCHAR,   -- schema_version, firstfault_version, catalog_version, roots, complete, ...
    value         VARCHAR    -- its value
);

-- One row for each stretch of lines whose stamps a clock shift applies to; empty until the correlate stage fills it.
-- Question: How far off is each clock, and how is that known?
-- Example:
--     SELECT clock, round(-shift_ns / 1e9, 3) AS seconds_ahead, round(uncertainty_ns / 1e9, 3) AS bound, how FROM clocks
--     ORDER BY reference DESC, clock
CREATE TABLE clocks (
    clock         VARCHAR,   -- clock domain, as in sources.clock
    host          VARCHAR,   -- host whose clock it is, NULL where none is known
    source_id     INTEGER,   -- the only source that the row holds for, NULL where it holds for the whole domain
    from_line     BIGINT,    -- first line that the row holds for (1 where the clock never stepped)
    until_line    BIGINT,    -- first line after them, NULL where the row holds to the end
    utc_offset_s  INTEGER,   -- seconds east of UTC of the stamps, NULL where nothing fixes the zone (then 0 is used)
    shift_ns      BIGINT,    -- nanoseconds to add to a stamp, once in UTC, to come to the job's aligned clock (to seconds since boot: the boot time)
    uncertainty_ns BIGINT,   -- half width of the shift's bound, NULL where unknown
    reference     BOOLEAN,   -- TRUE for the domain that the others are aligned to
    how           VARCHAR    -- what the shift rests on, in words
);

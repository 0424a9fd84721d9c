-- Where a source goes on in this part: the first stamp of the part follows the lines that waited for one.
UPDATE near
SET next_ns = f.next_ns
FROM (SELECT source_id, arg_min(next_ns, line) AS next_ns FROM part_lines GROUP BY source_id) f
WHERE near.source_id = f.source_id AND near.next_ns IS NULL;

-- What the lines of signals and of progress inherit from their neighbours.
INSERT INTO near
SELECT l.source_id, l.line, l.near_kind, l.near_res_ns, l.near_offset_s, l.next_ns
FROM part_lines l
SEMI JOIN part_wanted w ON w.source_id = l.source_id AND w.line = l.line;

"""The timeline: one DuckDB file that holds what the logs of a job say, and the two ways to reach it.

Tables and views are the `.sql` files in `schema/` and `views/`, which `relations` describes; `writer` makes a new file,
`store` opens one, `gate` opens one for questions from outside.
"""

from __future__ import annotations

from firstfault.timeline.store import SCHEMA_VERSION, TimelineError, create_schema, open_timeline
from firstfault.timeline.writer import write_timeline

__all__ = ["SCHEMA_VERSION", "TimelineError", "create_schema", "open_timeline", "write_timeline"]

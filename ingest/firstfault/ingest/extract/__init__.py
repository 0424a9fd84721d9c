"""From framed lines to rows: signals of the catalog, tracebacks and tables as records, progress of ranks."""

from __future__ import annotations

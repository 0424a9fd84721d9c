"""A timeline for other tools: Parquet files of its tables, and a trace of swim lanes that Perfetto opens."""

from __future__ import annotations

"""The local page: drop files or folders, paste a log, read the report, ask the timeline, look into the catalog."""

from __future__ import annotations

"""The Model Context Protocol server: an assistant's questions to a diagnosis, its timeline and the catalog.

Read-only, without a network, confined to the folders that it was started with; what comes from logs is marked as such.
"""

from __future__ import annotations

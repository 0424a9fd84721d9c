"""What one does with a diagnosis later: check its lines, look whether a fix held, compare it with others."""

from __future__ import annotations

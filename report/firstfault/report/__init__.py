"""Diagnosis to text, Markdown, HTML and JSON: one frozen object in, one rendering out, no query and no file access."""

from __future__ import annotations

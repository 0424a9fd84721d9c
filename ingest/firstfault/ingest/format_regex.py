"""Owns the two engines that a format's pattern runs in: RE2 for a line, Rust's regex in polars for columns."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import re2  # type: ignore[import-untyped]

from firstfault.catalog.columns import for_polars

__all__ = ["GROUP", "REST", "for_line", "for_polars", "groups_of", "has_rest", "unnamed"]

GROUP = re.compile(r"\(\?P<(\w+)>")
REST = ("rest", "message")


def unnamed(pattern: str) -> str:
    """The pattern with its groups as they are, but without names."""
    return GROUP.sub("(", pattern)


@cache
def for_line(pattern: str) -> Any:
    """The pattern compiled for one line."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    return re2.compile(pattern, options)


def groups_of(pattern: str) -> tuple[str, ...]:
    return tuple(GROUP.findall(pattern))


def has_rest(pattern: str) -> bool:
    return any(name in REST for name in groups_of(pattern))

"""What failures look like and mean: entries, facts and classes as data, and the engine that finds them in logs."""

from __future__ import annotations

from firstfault.catalog.loader import Catalog, load_catalog
from firstfault.catalog.model import (
    FALLBACK_ENTRIES,
    Entry,
    Event,
    Example,
    Fact,
    FailureClass,
    FrameworkFix,
    Pattern,
    Role,
    Scope,
)
from firstfault.catalog.problem import CatalogError, Problem

__all__ = [
    "FALLBACK_ENTRIES",
    "Catalog",
    "CatalogError",
    "Entry",
    "Event",
    "Example",
    "Fact",
    "FailureClass",
    "FrameworkFix",
    "Pattern",
    "Problem",
    "Role",
    "Scope",
    "load_catalog",
]

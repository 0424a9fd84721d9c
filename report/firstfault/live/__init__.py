"""While a job runs: a command kept and its end passed on, the state of a machine collected, logs followed."""

from __future__ import annotations

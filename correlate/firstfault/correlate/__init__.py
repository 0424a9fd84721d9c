"""Timeline to diagnosis: clocks, attempts, collectives, the causal graph, the ranking with its refusals."""

from __future__ import annotations

from firstfault.correlate.diagnosis import Diagnosis, Verdict

__all__ = ["Diagnosis", "Verdict"]

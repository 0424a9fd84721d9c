"""The option --redact: one redactor for all outputs of a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from firstfault.correlate.diagnosis import Diagnosis
    from firstfault.report.redact import Redactor

Redact = Annotated[
    bool,
    typer.Option(
        "--redact",
        help="Replace hosts, users, addresses and paths, the same everywhere. Secrets are masked always.",
    ),
]


def redactor(database: Path, answer: Diagnosis) -> Redactor:
    """The redactor of one job: it knows every host of the timeline and of the answer."""
    from firstfault.report.redact import Redactor
    from firstfault.report.redact_timeline import known_hosts

    named = {
        *known_hosts(database),
        *answer.initiating.hosts,
        *answer.initiating.aliases,
        *answer.collateral.hosts,
        *(fate.host for fate in answer.fates if fate.host),
        *(clock.host for clock in answer.clocks if not clock.host.startswith("file:")),
    }
    return Redactor(named)


def redact_in_place(database: Path, one: Redactor) -> None:
    """The timeline of --output, replaced by its redacted copy."""
    from firstfault.report.redact_timeline import copy_timeline

    copy_timeline(database, database, one.text, one.path)

"""The options of the lines before the failure: how many, and of which ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from firstfault.cli.messages import CommandError, Status

if TYPE_CHECKING:
    from firstfault.correlate.contexts import Wanted

ContextLines = Annotated[
    int | None,
    typer.Option(
        "--context",
        metavar="N",
        min=0,
        help="Show the last N lines before the first evidence, for each rank it is about.",
    ),
]
ContextRanks = Annotated[
    str | None,
    typer.Option("--context-ranks", metavar="RANKS", help="Of these ranks instead, such as 0-7,12, or 'all'."),
]
USUAL_LINES = 100


def wanted_context(lines: int | None, ranks: str | None) -> Wanted:
    """What to show; ranks without a number of lines mean a hundred."""
    from firstfault.correlate.contexts import Wanted
    from firstfault.correlate.model import parse_ranks

    if ranks is None:
        return Wanted(lines or 0)
    count = USUAL_LINES if lines is None else lines
    if ranks == "all":
        return Wanted(count, every_rank=True)
    listed = parse_ranks(ranks)
    if not listed:
        raise CommandError(f"--context-ranks {ranks}: write ranks as 3, 0-7,12 or all", Status.USAGE)
    return Wanted(count, listed)

"""`firstfault verify` and `firstfault compare`: what one does with diagnoses later, as text or JSON."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstfault.cli.messages import CommandError, Status, errors_in_words, say
from firstfault.cli.settings import Quiet

if TYPE_CHECKING:
    from firstfault.followup.after import After
    from firstfault.followup.compare import Compared
    from firstfault.followup.saved import Saved
    from firstfault.followup.verify import Checked

_FORMATS = ("text", "json")
ShortFormat = Annotated[str, typer.Option("--format", metavar="text|json", help="What to print.")]


def verify(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="A diagnosis.json, or the folder of --output.")],
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="The logs that it was made from.")
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option("--after", metavar="PATH", help="Logs of a run after the fix instead; may be repeated."),
    ] = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="The report was made with --redact: replace the same in the logs before looking."
        ),
    ] = False,
    format_: ShortFormat = "text",
    quiet: Quiet = False,
) -> None:
    """Look up every line that a report cites; or, with --after, say whether a fix held.

    Exits with 3 where a line is not as cited, or where the fix did not hold or is not proven yet.
    """
    with errors_in_words():
        _check_format(format_)
        if bool(paths) == bool(after):
            raise CommandError("give either the PATHs of the logs, or --after PATH of a new run", Status.USAGE)
        if after and redact:
            raise CommandError(
                "--redact: it is for the logs that the report was made from, not for --after", Status.USAGE
            )
        saved = _read(report)
        good = (
            _verify_after(saved, after, format_, quiet)
            if after
            else _verify(saved, paths or [], format_, quiet, redact)
        )
        if not good:
            raise typer.Exit(int(Status.NOT_HEALTHY))


def _verify(saved: Saved, paths: list[str], format_: str, quiet: bool, redact: bool) -> bool:
    from firstfault.followup.verify import State, check
    from firstfault.timeline import open_timeline

    if not saved.cited:
        raise CommandError(f"{saved.name}: it cites no line")
    with _timeline(paths, quiet) as database:
        if redact:
            _redact(database)
        with open_timeline(database) as con:
            checked = check(con, saved)
    if not redact and all(one.state is State.NO_FILE for one in checked) and _stands_in(saved):
        say("firstfault: the paths of this report look replaced; where it was made with --redact, give that here too")
    good = all(one.state is State.SAME for one in checked)
    if format_ == "json":
        _print_json({"ok": good, "lines": [asdict(one) for one in checked]})
    else:
        sys.stdout.writelines(f"{line}\n" for line in _verify_text(checked))
    return good


def _stands_in(saved: Saved) -> bool:
    """Whether a path of a log looks like those of a redacted report."""
    parts = {part for one in saved.cited for part in one.path.split("/")}
    return any(part.startswith(("dir-", "host-")) and part.partition("-")[2].isdigit() for part in parts)


def _redact(database: Path) -> None:
    """Replace in a timeline what `diagnose --redact` replaces, with the same stand-ins."""
    from firstfault.cli.redaction import redact_in_place, redactor
    from firstfault.cli.run import judge

    answer = judge(database)
    names = redactor(database, answer)
    names.answer(answer)  # the report is replaced first, and stand-ins are numbered as they are met
    redact_in_place(database, names)


def _verify_text(checked: tuple[Checked, ...]) -> Iterator[str]:
    from firstfault.followup.verify import State
    from firstfault.report.words import clean, many

    for one in checked:
        if one.state is State.SAME:
            continue
        now = {
            State.MOVED: f"now at line {one.line}",
            State.CHANGED: f"another text stands there: {clean(one.text or '')[:160]}",
            State.GONE: "the file ends before that line",
            State.NO_FILE: "there is no such file in these logs",
        }[one.state]
        yield f"{one.state:<8} {clean(one.cited.path)}:{one.cited.line}  {now}"
        yield f"         cited: {clean(one.cited.text)[:160]}"
    same = sum(one.state is State.SAME for one in checked)
    yield f"{many(len(checked), 'cited line')}: {same} as cited, {len(checked) - same} not"


def _verify_after(saved: Saved, paths: list[str], format_: str, quiet: bool) -> bool:
    from firstfault.followup.after import Held, after
    from firstfault.timeline import open_timeline

    with _timeline(paths, quiet) as database:
        new = _diagnosed(database, ", ".join(paths))
        with open_timeline(database) as con:
            try:
                found = after(con, saved, new)
            except ValueError as error:
                raise CommandError(str(error)) from error
    if format_ == "json":
        _print_json(asdict(found))
    else:
        sys.stdout.writelines(f"{line}\n" for line in _after_text(found))
    return found.held is Held.FIXED


def _after_text(found: After) -> Iterator[str]:
    from firstfault.followup.after import Held
    from firstfault.report.words import clean, many

    yield f"{found.held}: {found.why}"
    if found.first_seen is None:
        absence = "; an absence, which no line states" if found.held is Held.BACK else ""
        yield f"  signature  {found.signature}: on no line of the new run{absence}"
    else:
        seen = found.first_seen
        yield f"  signature  {found.signature}: {many(found.times_seen, 'line')}, first {clean(seen.path)}:{seen.line}"
        yield f"             {clean(seen.text)[:160]}"
    if found.old_step is not None or found.new_step is not None:
        yield f"  steps      {_or_unknown(found.old_step)} before, {_or_unknown(found.new_step)} now"
    if found.old_seconds is not None or found.new_seconds is not None:
        yield f"  time       failed after {_seconds(found.old_seconds)}; the new run: {_seconds(found.new_seconds)}"


def _or_unknown(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _seconds(value: float | None) -> str:
    return "an unknown time" if value is None else f"{value:,.0f} s"


def compare(
    jobs: Annotated[
        list[Path],
        typer.Argument(metavar="JOB...", help="Each a diagnosis.json, a folder of --output, a timeline, or logs."),
    ],
    format_: ShortFormat = "text",
    quiet: Quiet = False,
) -> None:
    """Say whether jobs failed for the same reason, and which hosts and GPUs come again."""
    with errors_in_words():
        _check_format(format_)
        if len(jobs) < 2:
            raise CommandError("compare needs two jobs or more", Status.USAGE)
        from firstfault.followup.compare import compare as compared

        found = compared([_job(one, quiet) for one in jobs])
        if format_ == "json":
            _print_json(asdict(found))
        else:
            sys.stdout.writelines(f"{line}\n" for line in _compare_text(found))


def _compare_text(found: Compared) -> Iterator[str]:
    from firstfault.followup.compare import Likeness
    from firstfault.report.words import clean, many, number_ranges

    for job in found.jobs:
        where = ", ".join((*job.hosts, *(f"rank {text}" for text in [number_ranges(job.ranks)] if job.ranks)))
        what = " ".join(part for part in (job.cls or "", job.entry or "") if part)
        yield f"{clean(job.name)}"
        sure = f" ({job.confidence:.2f})" if job.confidence is not None else ""
        yield f"  {job.verdict}{sure}: {what or ('it completed' if job.verdict == 'no-failure' else 'no root')}"
        if job.cls:
            yield f"  {where or 'the whole job'}, {job.at or 'at an unknown time'}"
        yield f"  furthest step {_or_unknown(job.step)}"
    words = {
        Likeness.SAME: "the same root",
        Likeness.SAME_KIND: "the same kind of failure, elsewhere",
        Likeness.RELATED: "the same class, by another entry",
        Likeness.SAME_PLACE: "another failure on the same host",
        Likeness.DIFFERENT: "different roots",
        Likeness.NO_FAILURE: "at least one of them completed, so there is nothing to compare",
        Likeness.UNKNOWN: "cannot be told: one of them names no root",
    }
    yield ""
    for pair in found.pairs:
        shared = f" (both name {', '.join(pair.shared)})" if pair.shared else ""
        yield f"{clean(pair.one)} and {clean(pair.other)}: {words[pair.likeness]}{shared}"
    for one in found.recurring:
        classes = ", ".join(one.classes)
        yield f"{one.kind} {clean(one.name)}: {many(one.times, 'time')} the place of the root ({classes})"
    if not found.recurring:
        yield "no host is named twice"


def _job(path: Path, quiet: bool) -> Saved:
    """One job to compare, however it is given."""
    if path.is_dir() and not (path / "diagnosis.json").is_file():
        with _timeline([str(path)], quiet) as database:
            return _diagnosed(database, str(path))
    if path.name.endswith(".duckdb"):
        return _diagnosed(path, str(path))
    if path.is_dir() or path.suffix == ".json":
        return _read(path)
    with _timeline([str(path)], quiet) as database:
        return _diagnosed(database, str(path))


def _read(path: Path) -> Saved:
    from firstfault.followup.saved import SavedError, read_saved

    file = path / "diagnosis.json" if path.is_dir() else path
    try:
        return read_saved(file, str(path))
    except SavedError as error:
        raise CommandError(str(error)) from error


def _diagnosed(database: Path, name: str) -> Saved:
    """The diagnosis of a timeline, which stays as it is."""
    from firstfault.catalog import load_catalog
    from firstfault.correlate.engine import diagnose_open
    from firstfault.followup.saved import saved_from
    from firstfault.report.document import document
    from firstfault.timeline import open_timeline

    with open_timeline(database) as con:
        return saved_from(document(diagnose_open(con, load_catalog(), keep=False)), name)


@contextmanager
def _timeline(paths: list[str], quiet: bool) -> Iterator[Path]:
    """The timeline of some logs, for a while, with the text of every line."""
    from firstfault.cli.run import read_logs
    from firstfault.ingest import IngestOptions

    with tempfile.TemporaryDirectory(prefix="firstfault-") as folder:
        database = Path(folder) / "timeline.duckdb"
        read_logs(paths, database, IngestOptions(keep_text=True), quiet)
        yield database


def _check_format(name: str) -> None:
    if name not in _FORMATS:
        raise CommandError(f"--format {name}: choose one of {', '.join(_FORMATS)}", Status.USAGE)


def _print_json(value: object) -> None:
    from firstfault.report.safe_json import safe_json

    sys.stdout.write(safe_json(value, indent=2) + "\n")

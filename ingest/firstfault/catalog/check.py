"""Checks a catalog and says all that is wrong with it at once: file, line, what, why, how to mend it.

    python -m firstfault.catalog.check [--healthy FOLDER] [FILE-OR-FOLDER ...]

checks the catalog of the package together with the given files of your own. Exit status 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from firstfault.catalog.check_entries import check_entry, check_links
from firstfault.catalog.check_examples import check_examples, check_healthy, check_overlaps
from firstfault.catalog.loader import HERE, Catalog, load_catalog
from firstfault.catalog.matcher import Matcher
from firstfault.catalog.problem import CatalogError, Places, Problem, Reporter

HealthyLines = Mapping[str, Sequence[str]]
"""Lines of runs that ended well, by the name of the file they stand in."""


def check_catalog(catalog: Catalog, healthy: HealthyLines | None = None) -> list[Problem]:
    """Everything that is wrong with a catalog, in the order of files and lines."""
    report = Reporter(catalog.problems, _places)
    for entry in catalog.entries.values():
        check_entry(entry, report)
    check_links(catalog, report)
    try:
        matcher = Matcher.load(catalog)
    except CatalogError as error:
        report.problems.extend(error.problems)
    else:
        check_examples(catalog, matcher, report)
        check_overlaps(catalog, matcher, report)
        check_healthy(catalog, matcher, healthy or {}, report)
    return sorted(set(report.problems))


def read_healthy(folder: Path) -> dict[str, list[str]]:
    """The lines of all logs of a folder of healthy runs."""
    return {path.name: path.read_text(encoding="utf-8").splitlines() for path in sorted(folder.glob("*.log"))}


def _places(path: str) -> Places:
    for candidate in (HERE / path, Path(path)):
        try:
            return Places(candidate.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
    return Places("")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints the problems, returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m firstfault.catalog.check", description="Check catalog entries.")
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders of your own entries")
    parser.add_argument("--healthy", type=Path, help="folder of logs of runs that ended well: nothing may fire on them")
    options = parser.parse_args(arguments)
    try:
        catalog = load_catalog(options.paths)
    except OSError as error:
        sys.stderr.write(f"{error.filename}: cannot be read: {error.strerror}\n")
        return 1
    problems = _of_interest(
        check_catalog(catalog, read_healthy(options.healthy) if options.healthy else None), options.paths
    )
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    counted = f"{len(catalog.entries)} entries, {len(catalog.facts)} facts, {len(catalog.classes)} classes"
    sys.stderr.write(f"{counted}: {len(problems)} problems\n")
    return 1 if problems else 0


def _of_interest(problems: Iterable[Problem], paths: Sequence[Path]) -> list[Problem]:
    """With paths given, only what concerns them: the package's own files are checked where the package is made."""
    roots = tuple(map(str, paths))
    return [one for one in problems if not roots or one.path.startswith(roots)]


if __name__ == "__main__":
    sys.exit(main())

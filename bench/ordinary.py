"""Writes the lines of usual logs by which the search of the catalog chooses its texts.

    python bench/ordinary.py > ingest/firstfault/catalog/ordinary.tsv

Nineteen of twenty lines are those of tests/catalog/healthy, of the beginnings of the sample jobs, and of a made-up job
of bench/corpus.py, each source with the same weight; the others are the examples of the catalog. Digits are `0`,
lines that are then the same once, with how many of ten thousand lines they are.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PORTION = ROOT / "ingest" / "firstfault" / "catalog"
FAILING = 0.05
LONGEST = 400
SELDOM = 0.25
_IDS = re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{6,}\b|(?<=0x)[0-9a-f]+")
_DIGITS = re.compile(r"\d+")


def main() -> None:
    """Prints the file."""
    shares: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as made:
        command = [sys.executable, str(ROOT / "bench" / "corpus.py"), made, "--ranks", "8", "--size", "8M"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        healthy = (1 - FAILING) / 3
        for share, texts in (
            (healthy, logs(ROOT / "tests" / "catalog" / "healthy", 1000)),
            (healthy, logs(ROOT / "sample_logs", 120)),
            (healthy, logs(Path(made), 2000)),
            (FAILING, examples(PORTION / "entries")),
        ):
            counts = Counter(filter(None, map(template, texts)))
            for line, count in counts.items():
                shares[line] += share * count / counts.total()
    for line, share in sorted(shares.items(), key=lambda pair: (-round(pair[1] * 1e4, 1), pair[0])):
        if share * 1e4 >= SELDOM:
            sys.stdout.write(f"{share * 1e4:.1f}\t{line}\n")


def logs(folder: Path, first: int) -> Iterator[str]:
    """The first lines of each log."""
    for path in sorted(folder.rglob("*.log")):
        yield from path.read_bytes().decode("utf-8", "replace").split("\n")[:first]


def examples(folder: Path) -> Iterator[str]:
    """The lines that entries match."""
    for path in sorted(folder.glob("*.toml")):
        parsed = tomllib.loads(path.read_text(encoding="utf-8"))
        for entry in parsed.get("entry", [parsed]):
            yield from (example["line"] for example in entry.get("match", ()))


def template(line: str) -> str:
    """The line with its numbers as `0`."""
    line = line.split("\r")[-1] if line.count("\r") > 1 else line.rstrip("\r")
    line = "".join(char for char in line if char.isprintable())[:LONGEST]
    return _DIGITS.sub(lambda digits: "0" * min(4, len(digits[0])), _IDS.sub("0000", line)).strip()


if __name__ == "__main__":
    main()

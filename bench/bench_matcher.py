"""How fast the catalog matches: MB/s on one core, the scan alone and with every hit confirmed, and 500 entries more.

    python bench/bench_matcher.py [--hits]

`--hits` lists the patterns that fire most on ordinary text without being confirmed: their triggers are worth a look.
Three texts are matched: the job of bench/corpus.py; `near`, the lines of tests/catalog/healthy, which were chosen for
their likeness to failures, with a quarter of progress lines; `dense`, of which a fifth are examples of the catalog.
The first rounds still meet many kinds of lines for the first time, the last ones few. Numbers and headers are varied.
Lines are confirmed as they stand, pattern by pattern, as an ingest does.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for portion in ("ingest", "correlate", "report"):
    sys.path.insert(0, str(ROOT / portion))

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402

from firstfault.catalog import Catalog, load_catalog  # noqa: E402
from firstfault.catalog.matcher import Matcher  # noqa: E402

CHUNK = 4_000_000
ROUNDS = 5
CHUNKS = 3 * ROUNDS + 1
SIZE = CHUNK * CHUNKS
HEADERS = ("", "", "[rank3]: ", "2026-05-12 10:11:03,114 - train - INFO - ", "[rank1]:[W512 10:11:09.120553 a.cpp:41] ")
PROGRESS = re.compile(r"iteration  |loss: |'loss': |global_step=|^step ")
USUAL = ("nccl.log", "frameworks.log", "torchrun.log", "serving.log")


def text(lines: list[str], size: int, seed: int) -> bytes:
    """`size` bytes of these lines in random order, with varied numbers and headers."""
    chance = random.Random(seed)
    made: list[str] = []
    total = 0
    while total < size:
        line = chance.choice(HEADERS) + chance.choice(lines)
        line = "".join(str(chance.randrange(1, 10)) if char in "123456789" else char for char in line)
        made.append(line)
        total += len(line.encode()) + 1
    return ("\n".join(made) + "\n").encode()


def ordinary(size: int = SIZE) -> bytes:
    """Text of runs that go well: a quarter of it are progress lines, as in training logs."""
    folder = ROOT / "tests" / "catalog" / "healthy"
    lines = [line for name in USUAL for line in (folder / name).read_text(encoding="utf-8").splitlines() if line]
    progress = [line for line in lines if PROGRESS.search(line)]
    return text(lines + progress * (len(lines) // len(progress) // 3), size, seed=1)


def dense(catalog: Catalog, share: float = 0.2, size: int = SIZE) -> bytes:
    """Text in which this share of lines are examples of failures."""
    failing = [one.line for entry in catalog.entries.values() for one in entry.match]
    healthy = [line for line in ordinary(400_000).decode().splitlines() if line]
    chance = random.Random(2)
    lines = [chance.choice(failing) if chance.random() < share else chance.choice(healthy) for _ in range(20_000)]
    return text(lines, size, seed=3)


def larger(catalog: Catalog, more: int) -> Catalog:
    """The catalog with synthetic entries of the usual kind of pattern."""
    chance = random.Random(4)
    words = ["adapter", "buffer", "channel", "driver", "engine", "fabric", "gateway", "handle", "index", "journal"]
    entries = dict(catalog.entries)
    template = next(iter(entries.values()))
    for number in range(more):
        first, second, third = chance.sample(words, 3)
        name = f"synthetic-{number}"
        regex = rf"{first} {second}{number} refused (?P<name>\S+): {third} (?P<code>\d+)"
        entries[name] = replace(template, id=name, patterns=(replace(template.patterns[0], id="p", regex=regex),))
    return replace(catalog, entries=entries)


def job(size: int = SIZE) -> bytes:
    """The beginnings of the logs of one host of a made-up job."""
    with tempfile.TemporaryDirectory() as made:
        command = [sys.executable, str(ROOT / "bench" / "corpus.py"), made, "--ranks", "8", "--size", str(size * 2)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        files = sorted(Path(made).rglob("*.log"))
        parts = [path.read_bytes()[: size // len(files)] for path in files]
    return b"".join(part[: part.rfind(b"\n") + 1] for part in parts)


class Text:
    """A chunk, and its lines as an ingest has them when it confirms."""

    def __init__(self, chunk: bytes) -> None:
        self.chunk = chunk
        self.newlines = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == 10)
        self.lines = pl.Series(chunk.decode("utf-8", "replace").split("\n")[:-1])

    def scan(self, matcher: Matcher) -> int:
        """How many hits there are."""
        return len(matcher.scan(self.chunk, self.newlines)[0])

    def match(self, matcher: Matcher) -> int:
        """How many lines hold how many patterns."""
        ends, patterns = matcher.scan(self.chunk, self.newlines)
        pairs = np.sort(np.searchsorted(self.newlines, ends - 1) << 32 | patterns)
        pairs = pairs[np.append(np.ones(1, dtype=np.bool_), pairs[1:] != pairs[:-1])]
        rows = pairs >> 32
        new = np.append(np.ones(1, dtype=np.bool_), rows[1:] != rows[:-1])
        return int(matcher.hold(pairs & 0xFFFFFFFF, self.lines.gather(rows[new]), np.cumsum(new) - 1).sum())


class Texts:
    """Several chunks, one for each round: what is learnt from one is of use to the next, as in an ingest."""

    def __init__(self, text: bytes) -> None:
        self.parts = []
        start = 0
        while start < len(text):
            stop = text.rfind(b"\n", start, start + CHUNK) + 1 or len(text)
            self.parts.append(Text(text[start:stop]))
            start = stop

    def speed(self, work: Callable[[Text, Matcher], int], catalog: Catalog) -> str:
        """Median MB/s of CPU time of the first rounds and of the last; the first chunk is left out."""
        matcher, speeds = Matcher.load(catalog), []
        for part in self.parts[:CHUNKS]:
            start = time.process_time()
            work(part, matcher)
            speeds.append(len(part.chunk) / 1e6 / (time.process_time() - start))
        return "".join(f"{statistics.median(some):7.0f}" for some in (speeds[1 : ROUNDS + 1], speeds[-ROUNDS:]))


def hit_table(matcher: Matcher, chunk: bytes) -> list[tuple[int, int, str, str]]:
    """(hits, confirmed, id, pattern id) by hits."""
    newlines = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == 10)
    lines = chunk.decode("utf-8", "replace").split("\n")
    ends, patterns = matcher.scan(chunk)
    pairs = set(zip(np.searchsorted(newlines, ends - 1).tolist(), patterns.tolist(), strict=True))
    hits = Counter(pattern for _, pattern in pairs)
    confirmed = Counter(pattern for line, pattern in pairs if matcher.confirm(pattern, lines[line]) is not None)
    named = []
    for number, count in hits.items():
        pattern = matcher.patterns[number]
        named.append((count, confirmed[number], pattern.id, pattern.pattern_id))
    return sorted(named, reverse=True)


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hits", action="store_true")
    options = parser.parse_args()
    catalog = load_catalog()
    start = time.perf_counter()
    matcher = Matcher.load(catalog)
    loaded = time.perf_counter() - start
    more = larger(catalog, 500)
    calm = ordinary()
    out = sys.stdout.write
    out(f"{len(catalog.entries)} entries, {len(catalog.facts)} facts, {len(matcher.patterns)} patterns")
    out(f", {len(matcher.pieces)} texts, loaded in {loaded:.3f} s\n")
    out("MB/s per core of the first and of the last rounds\n")
    out("              scan    with confirmation  500 entries more  hits a line  confirmed\n")
    for name, chunk in (("job", job()), ("near", calm), ("dense", dense(catalog))):
        several = Texts(chunk)
        out(f"{name:10}{several.speed(Text.scan, catalog)}   {several.speed(Text.match, catalog)}")
        out(f"   {several.speed(Text.match, more)}")
        one = several.parts[ROUNDS]
        lines = len(one.lines)
        out(f"{one.scan(matcher) / lines:13.2f}{one.match(matcher) / lines:11.2f}\n")
    if options.hits:
        out("\nhits  confirmed  on ordinary text\n")
        for count, confirmed, entry, pattern in hit_table(matcher, calm[:CHUNK])[:40]:
            out(f"{count:6} {confirmed:6}  {entry} {pattern}\n")


if __name__ == "__main__":
    main()

"""Feeds bent input to every way in, for as long as asked, and keeps what breaks a promise.

    python bench/fuzz.py --seconds 3600 --out /tmp/findings            all targets in turns
    python bench/fuzz.py --seconds 60 --guided flight-recorder json    guided by coverage; needs atheris

Inputs are those of `tests/fuzz/corpus` and of the project itself, cut, doubled, mixed and overwritten. With `--guided`,
what reaches new code is bent further (libFuzzer under atheris). A finding is a file, with the traceback beside it; one
for each place that raised. A target that takes longer than `--slow` seconds over one input is a finding as well.
Exit status 1 where something was found. Put the input into `tests/fuzz/corpus/TARGET` once it is mended.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for _folder in ("ingest", "correlate", "report", "."):
    sys.path.insert(0, str(ROOT / _folder))


class Findings:
    """What was found, one for each place that raised."""

    def __init__(self, folder: Path, slow: float) -> None:
        self.folder, self.slow, self.seen = folder, slow, set[str]()
        folder.mkdir(parents=True, exist_ok=True)

    def try_one(self, target: object, data: bytes) -> None:
        """Run a target over one input."""
        begun = time.process_time()
        (self.folder / "current").write_bytes(data)
        try:
            target.run(data)  # type: ignore[attr-defined]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            frames = traceback.extract_tb(error.__traceback__)
            place = next((one for one in reversed(frames) if "firstfault" in one.filename), frames[-1])
            said = str(error)[:60] if isinstance(error, AssertionError) else ""
            self._keep(
                target, data, f"{type(error).__name__} {place.name}:{place.lineno} {said}", traceback.format_exc()
            )
        took = time.process_time() - begun
        if took > self.slow:
            self._keep(target, data, "slow", f"{took:.1f} CPU seconds for {len(data)} bytes\n")

    def _keep(self, target: object, data: bytes, what: str, text: str) -> None:
        name = target.name  # type: ignore[attr-defined]
        key = hashlib.sha256(f"{name} {what}".encode()).hexdigest()[:12]
        if key in self.seen:
            return
        self.seen.add(key)
        (self.folder / f"{name}-{key}").write_bytes(data)
        (self.folder / f"{name}-{key}.txt").write_text(f"{what}\n{text}", encoding="utf-8")
        print(f"{name}: {what}", flush=True)  # noqa: T201


def plain(name: str, seconds: float, findings: Findings, seed: int) -> int:
    """Bend inputs at random; the number of inputs tried."""
    from tests.fuzz.bend import bent
    from tests.fuzz.ground import MOST, corpus
    from tests.fuzz.targets import TARGETS

    target, rng = TARGETS[name], random.Random(seed)
    pool = [*corpus(name), *target.seeds()]
    tried, end = 0, time.monotonic() + seconds
    as_they_are = rng.sample(pool, len(pool))
    while time.monotonic() < end:
        whole = as_they_are.pop()[:MOST] if as_they_are and tried % 2 else bent(pool, rng, MOST)
        findings.try_one(target, whole)
        tried += 1
    return tried


def guided(name: str, seconds: float, findings: Findings, seed: int) -> None:
    """Let coverage guide it; never returns."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["firstfault"], enable_loader_override=False):
        import firstfault.correlate.engine
        import firstfault.ingest.dumps
        import firstfault.ingest.opening
        import firstfault.ingest.run
        import firstfault.timeline.gate  # noqa: F401
    from tests.fuzz.ground import MOST, corpus, folder
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    start = folder() / "seeds"
    start.mkdir()
    for number, one in enumerate([*corpus(name), *target.seeds()]):
        (start / f"{number:05d}").write_bytes(one[:MOST])
    tried = [0]

    def one_input(data: bytes) -> None:
        tried[0] += 1
        findings.try_one(target, data)
        if tried[0] % 200 == 0:
            print(f"tried {tried[0]}", flush=True)  # noqa: T201

    atheris.Setup(
        [sys.argv[0], f"-max_total_time={int(seconds)}", f"-seed={seed + 1}", f"-max_len={MOST}", "-rss_limit_mb=4000",
         "-timeout=120", "-verbosity=0", str(start)],
        one_input,
    )  # fmt: skip
    atheris.Fuzz()


def main() -> int:
    """Run the slices, each in a process of its own, so that a crash of an engine is a finding too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="some of the targets; all without")
    parser.add_argument("--seconds", type=float, default=60, help="in all, divided among the targets")
    parser.add_argument("--slice", type=float, default=60, help="how long one target has its turn")
    parser.add_argument("--out", type=Path, default=Path("findings"), help="where findings go")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slow", type=float, default=10, help="CPU seconds for one input that are a finding")
    parser.add_argument("--hang", type=float, default=120, help="seconds after its slice until a target is ended")
    parser.add_argument("--guided", action="store_true", help="guided by coverage, with atheris")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        findings = Findings(given.out, given.slow)
        if given.guided:
            guided(given.targets[0], given.seconds, findings, given.seed)
        print(f"tried {plain(given.targets[0], given.seconds, findings, given.seed)}", flush=True)  # noqa: T201
        return 0
    from tests.fuzz.targets import TARGETS

    names = given.targets or list(TARGETS)
    if unknown := [name for name in names if name not in TARGETS]:
        parser.error(f"unknown targets {unknown}; there are {list(TARGETS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    end, seed, tried, spent = (
        time.monotonic() + given.seconds,
        given.seed,
        dict.fromkeys(names, 0),
        dict.fromkeys(names, 0.0),
    )
    while time.monotonic() < end:
        for name in names:
            left = min(given.slice, end - time.monotonic())
            if left <= 0:
                break
            seed += 1
            begun = time.monotonic()
            command = [sys.executable, __file__, "--one", name, "--seconds", str(left), "--seed", str(seed)]
            command += ["--out", str(given.out), "--slow", str(given.slow), *(["--guided"] if given.guided else [])]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, check=False, cwd=given.out, timeout=left + given.hang
                )
                said, status = done.stdout, f"status {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
                failed = done.returncode != 0
            except subprocess.TimeoutExpired:
                said, status, failed = "", "does not end", True
            counts = [int(line.split()[1]) for line in said.splitlines() if line.startswith("tried ")]
            tried[name] += counts[-1] if counts else 0
            spent[name] += time.monotonic() - begun
            if failed or not counts:
                (given.out / f"{name}-{seed}-crash.txt").write_text(status, encoding="utf-8")
                (given.out / f"{name}-{seed}-crash").write_bytes((given.out / "current").read_bytes())
            state = {one: {"tried": tried[one], "seconds": round(spent[one])} for one in names}
            (given.out / "state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")
    found = sorted(path.name for path in given.out.glob("*.txt"))
    print(json.dumps({"tried": tried, "seconds": spent, "findings": found}, indent=1))  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""From a run's directory to a sample: logs with neutral paths, evidence lines found, case.toml written."""

from __future__ import annotations

import gzip
import json
import pathlib
import re
import shutil
import sys

from jobs import Job

MOST = 4  # lines of evidence that one pattern gives in one file
HERE = str(pathlib.Path(__file__).resolve().parents[2]).encode()
FORBIDDEN = re.compile(rb"/home/|/root/\.|\.pyenv|/tmp/(?!torchelastic_)|" + re.escape(HERE))


def neutral(data: bytes, home: str) -> bytes:
    """The interpreter's own home becomes /usr/local; nothing else of the machine shows."""
    return data.replace(home.encode(), b"/usr/local")


def copy_logs(source: pathlib.Path, target: pathlib.Path, job: Job, home: str) -> None:
    """The logs that belong to the sample."""
    shutil.rmtree(target, ignore_errors=True)
    dropped = [
        spec.name
        for number, spec in enumerate(job.hosts)
        if job.keep_hosts is not None and number not in job.keep_hosts
    ]
    for path in sorted(source.rglob("*")):
        place = path.relative_to(source)
        if (
            path.is_dir()
            or any(part.startswith(".") for part in place.parts)
            or place.parts[0].startswith(tuple(dropped))
        ):
            continue
        data = neutral(path.read_bytes(), home)
        if FORBIDDEN.search(data):
            raise SystemExit(f"{path}: a path of this machine is left: {FORBIDDEN.search(data)}")
        new = target / place
        new.parent.mkdir(parents=True, exist_ok=True)
        if job.compress:
            new.with_name(new.name + ".gz").write_bytes(gzip.compress(data, mtime=0))
        else:
            new.write_bytes(data)
    for folder in sorted((p for p in target.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def evidence(logs: pathlib.Path, job: Job) -> list[str]:
    """`logs/FILE:LINE` of the lines that the patterns find."""
    found: dict[tuple[str, int], None] = {}
    for find in job.truth.evidence:
        pattern = re.compile(find.pattern)
        before = len(found)
        for path in sorted(logs.glob(find.files)):
            if path.is_file():
                data = path.read_bytes()
                data = gzip.decompress(data) if path.suffix == ".gz" else data
                lines = enumerate(data.split(b"\n"), 1)
                hits = [number for number, line in lines if pattern.search(line.decode(errors="replace"))]
                found |= {(f"logs/{path.relative_to(logs)}", number): None for number in hits[:MOST]}
        if len(found) == before:
            sys.stderr.write(f"{job.name}: nothing matches {find.pattern} in {find.files}\n")
    return [f"{path}:{number}" for path, number in sorted(found)]


def places(run_dir: pathlib.Path) -> dict[int, str]:
    """Rank to host, as each rank noted when it started."""
    found = {}
    for notes in sorted(run_dir.rglob(".places")):
        for line in notes.read_text().splitlines():
            _, rank, host, *_ = line.split()
            found[int(rank)] = host
    return found


def write_case(folder: pathlib.Path, job: Job, where: dict[int, str], source: str) -> None:
    """case.toml."""
    truth = job.truth
    for rank in truth.ranks:
        if where and truth.hosts and where.get(rank, truth.hosts[0]).split(".")[0] not in truth.hosts:
            raise SystemExit(f"{job.name}: rank {rank} ran on {where[rank]}, the truth says {truth.hosts}")
    world = job.nproc * len(job.hosts)
    others = [] if truth.failure_class == "none" else [rank for rank in range(world) if rank not in truth.ranks]
    rows: list[tuple[str, object]] = [
        ("determined", truth.determined),
        ("failure_class", truth.failure_class),
        ("also_acceptable", list(truth.also)),
        ("also_acceptable_ranks", [list(ranks) for ranks in truth.also_ranks]),
        ("initiating_ranks", list(truth.ranks)),
        ("initiating_hosts", list(truth.hosts)),
        ("root_evidence", evidence(folder / "logs", job)),
        ("collateral_ranks", others if truth.collateral is None else list(truth.collateral)),
        ("trap", truth.trap),
        ("missing_fact", truth.missing_fact),
    ]
    head = [("id", job.name), ("source", source), ("established_by", "the injected fault"), ("summary", job.summary)]
    text = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in head)
    text += "[truth]\n" + "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in rows)
    (folder / "case.toml").write_text(text)

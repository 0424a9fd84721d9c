#!/usr/bin/env python3
"""Copies the two jobs that travel inside the package from sample_logs/, without their empty files."""

from __future__ import annotations

import pathlib
import shutil

SAMPLES = pathlib.Path(__file__).resolve().parents[1]
DEMO = SAMPLES.parent / "report" / "firstfault" / "cli" / "demo"
JOBS = ("batch-width-rank5", "mute-rank6")


def main() -> None:
    """Copy."""
    for name in JOBS:
        shutil.rmtree(DEMO / name, ignore_errors=True)
        for path in sorted((SAMPLES / name).rglob("*")):
            if path.is_file() and path.stat().st_size:
                target = DEMO / name / path.relative_to(SAMPLES / name)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


if __name__ == "__main__":
    main()

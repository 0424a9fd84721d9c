#!/usr/bin/env python3
"""Runs firstfault from a checkout: makes a virtual environment in `.venv` once, and reuses it.

    python3 dev.py diagnose PATH...     any command of firstfault
    python3 dev.py test [ARGUMENT...]   the tests; arguments go to pytest
    python3 dev.py check                all that `.ci/run` checks
    python3 dev.py python [ARGUMENT...] the interpreter of the environment

Standard library only, for any Python that can say that it is too old.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent
VENV = ROOT / ".venv"
OLDEST = (3, 11)


def fail(message: str) -> None:
    sys.exit(f"dev.py: {message}")


def pip(*arguments: str) -> None:
    """Install into the environment; silent where all goes well."""
    done = subprocess.run(
        [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        fail(f"pip could not install what firstfault needs:\n{done.stdout}")


def development_tools() -> list[str]:
    """The group `dev` of pyproject.toml; older versions of pip cannot read it themselves."""
    import tomllib

    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    return list(groups["dev"])


def environment(tools: bool) -> None:
    """Make the environment, or complete it, where it does not fit this pyproject.toml and this Python."""
    state = hashlib.sha256(
        (ROOT / "pyproject.toml").read_bytes() + repr((sys.version_info[:3], str(ROOT))).encode()
    ).hexdigest()
    stamp = VENV / "firstfault-dev.txt"
    found = stamp.read_text(encoding="utf-8").split() if stamp.is_file() else []
    if found[:1] != [state] or not (VENV / "bin" / "python").exists():
        sys.stderr.write("dev.py: makes the virtual environment .venv; once, about a minute\n")
        made = subprocess.run(
            [sys.executable, "-m", "venv", "--clear", str(VENV)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if made.returncode:
            fail(f"no virtual environment can be made (Debian and Ubuntu: install python3-venv):\n{made.stdout}")
        pip("--editable", ".")
        found = [state]
    if tools and "tools" not in found:
        sys.stderr.write("dev.py: installs the tools for tests and checks into .venv; once\n")
        pip(*development_tools())
        found.append("tools")
    stamp.write_text("\n".join(found) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> None:
    if sys.version_info < OLDEST:
        fail(f"firstfault needs Python {'.'.join(map(str, OLDEST))} or newer; this is {sys.version.split()[0]}")
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(__doc__ or "")
        return
    command, rest = arguments[0], arguments[1:]
    environment(tools=command in ("test", "check", "setup", "python"))
    python = str(VENV / "bin" / "python")
    if command == "setup":
        return
    if command == "check":
        os.execvp("bash", ["bash", str(ROOT / ".ci" / "run")])
    if command == "python":
        os.execv(python, [python, *rest])
    if command == "test":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        workers = str(max(1, min(8, cores)))
        os.chdir(ROOT)
        os.execv(python, [python, "-m", "pytest", "-q", "-rfEs", "-n", workers, "-m", "not slow", *rest])
    os.execv(python, [python, "-m", "firstfault", command, *rest])


if __name__ == "__main__":
    main(sys.argv[1:])

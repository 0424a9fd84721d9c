"""Runs the steps of `action.yml` as a runner of GitHub does, as far as that file needs it, without GitHub.

Scripts are the file's own. Steps that use other actions are replaced: Python is the one of the tests, an upload notes
which files it would take. `gh` is a small program that keeps comments in a file.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
PORTIONS = os.pathsep.join(str(ROOT / portion) for portion in ("ingest", "correlate", "report"))
URL = "https://github.com/owner/repository/actions/runs/1/artifacts/2"

_GH = """#!{python}
import json, os, re, sys
arguments = sys.argv[1:]
file = os.environ["FAKE_COMMENTS"]
assert arguments[0] == "api" and os.environ["GH_TOKEN"] == "a-token", arguments
if not os.path.exists(file):
    sys.exit("HTTP 403: Resource not accessible by integration")
comments = json.load(open(file))
target = next(one for one in arguments if one.startswith("repos/"))
body = next((open(one[6:]).read() for one in arguments if one.startswith("body=@")), None)
if "POST" in arguments:
    assert target == "repos/owner/repository/issues/7/comments", target
    comments.append({{"id": 100 + len(comments), "type": "Bot", "body": body}})
elif "PATCH" in arguments:
    number = int(target.removeprefix("repos/owner/repository/issues/comments/"))
    next(one for one in comments if one["id"] == number)["body"] = body
else:
    assert 'select(.user.type == "Bot" and (.body | startswith(env.mark)))' in " ".join(arguments)
    for one in comments:
        if one["type"] == "Bot" and one["body"].startswith(os.environ["mark"]):
            print(one["id"])
json.dump(comments, open(file, "w"))
"""


@dataclass(slots=True)
class Run:
    """One run of the action: what it left behind."""

    folder: Path
    status: int = 0
    printed: str = ""
    failed_at: str = ""
    steps: dict[str, dict[str, str]] = field(default_factory=dict)
    uploaded: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The job's summary."""
        return (self.folder / "summary.md").read_text(encoding="utf-8")

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs of the action."""
        return {name: _filled(one["value"], self, {}, None) for name, one in ACTION["outputs"].items()}

    @property
    def comments(self) -> list[dict[str, Any]]:
        """The comments of the pull request."""
        found: list[dict[str, Any]] = json.loads((self.folder / "comments.json").read_text(encoding="utf-8"))
        return found

    @property
    def commands(self) -> list[str]:
        """What was printed that the runner takes for commands, as it decides that."""
        found, stopped = [], None
        for line in self.printed.splitlines():
            said = line.lstrip()
            if stopped is not None:
                stopped = None if said == f"::{stopped}::" else stopped
            elif said.startswith("::stop-commands::"):
                stopped = said.removeprefix("::stop-commands::")
            elif re.match(r"::[^:]*::", said) or "##[" in line:
                found.append(said)
        return found


def run(folder: Path, inputs: dict[str, str], *, pull_request: int | None = None, install: bool = False) -> Run:
    """Run all steps until one fails. With `install` false, firstfault is that of the working tree."""
    temp, site = folder / "temp", folder / "bin"
    for one in (temp, site):
        one.mkdir(exist_ok=True)
    gh = site / "gh"
    gh.write_text(_GH.format(python=sys.executable), encoding="utf-8")
    gh.chmod(0o755)
    made = Run(folder)
    given = (
        {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()} | {"token": "a-token"} | inputs
    )
    assert given.keys() == ACTION["inputs"].keys()
    for step in STEPS:
        if "if" in step and not _condition(step["if"], given):
            continue
        if "uses" in step:
            made.steps[step["id"]] = _used(step, made, given, pull_request)
        elif step.get("id") == "install" and not install:
            made.steps["install"] = {"folder": str(_as_installed(temp))}
        else:
            _script(step, made, given, pull_request)
            if made.status:
                made.failed_at = step["name"]
                break
    return made


def _as_installed(temp: Path) -> Path:
    folder = temp / "firstfault-00000000"
    place = folder / "venv" / "bin"
    place.mkdir(parents=True, exist_ok=True)
    program = place / "firstfault"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m firstfault "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    if not (place / "python").exists():
        (place / "python").symlink_to(sys.executable)
    return folder


def _script(step: dict[str, Any], made: Run, inputs: dict[str, str], pull_request: int | None) -> None:
    output = made.folder / "output.txt"
    output.write_text("", encoding="utf-8")
    own = {name: _filled(str(value), made, inputs, pull_request) for name, value in step.get("env", {}).items()}
    environment = {
        "PATH": os.pathsep.join((str(made.folder / "bin"), os.environ["PATH"])),
        "HOME": str(made.folder),
        "PYTHONPATH": "" if step.get("id") == "install" else PORTIONS,
        "XDG_CACHE_HOME": str(made.folder / "cache"),
        "RUNNER_TEMP": str(made.folder / "temp"),
        "GITHUB_ACTIONS": "true",
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(made.folder / "summary.md"),
        "GITHUB_WORKSPACE": str(made.folder),
        "GITHUB_REPOSITORY": "owner/repository",
        "FAKE_COMMENTS": str(made.folder / "comments.json"),
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]], cwd=made.folder,
        env={**environment, **own}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False, timeout=600,
    )  # fmt: skip
    made.printed += done.stdout
    made.status = done.returncode
    if "id" in step:
        values = [line.split("=", 1) for line in output.read_text(encoding="utf-8").splitlines()]
        made.steps[step["id"]] = dict(values)


def _used(step: dict[str, Any], made: Run, inputs: dict[str, str], pull_request: int | None) -> dict[str, str]:
    name = step["uses"].partition("@")[0]
    if name == "actions/setup-python":
        return {"python-path": sys.executable}
    assert name == "actions/upload-artifact"
    lines = _filled(step["with"]["path"], made, inputs, pull_request).split("\n")
    wanted = [line for line in lines if line and not line.startswith("!")]
    unwanted = [line[1:] for line in lines if line.startswith("!")]
    files = [file for one in wanted for file in Path(one).rglob("*") if file.is_file()]
    made.uploaded = sorted(file.name for file in files if not any(fnmatch.fnmatch(str(file), one) for one in unwanted))
    return {"artifact-url": URL}


def _filled(text: str, made: Run, inputs: dict[str, str], pull_request: int | None) -> str:
    """Text with its expressions replaced: those that the file uses, and no others."""
    return re.sub(r"\$\{\{ *(.+?) *\}\}", lambda found: _value(found[1], made, inputs, pull_request), text)


def _value(expression: str, made: Run, inputs: dict[str, str], pull_request: int | None) -> str:
    if " || " in expression:
        first, second = expression.split(" || ")
        return _value(first, made, inputs, pull_request) or _value(second, made, inputs, pull_request)
    if " && " in expression:
        first, second = expression.split(" && ")
        return _value(second, made, inputs, pull_request) if _condition(first, inputs) else ""
    if found := re.fullmatch(r"format\('([^']*)', (.+)\)", expression):
        return found[1].replace("{0}", _value(found[2], made, inputs, pull_request))
    if found := re.fullmatch(r"'([^']*)'", expression):
        return found[1]
    if found := re.fullmatch(r"inputs\.([a-z-]+)", expression):
        return inputs[found[1]]
    if found := re.fullmatch(r"steps\.([a-z]+)\.outputs\.([a-z-]+)", expression):
        assert any(step.get("id") == found[1] for step in STEPS)
        return made.steps.get(found[1], {}).get(found[2], "")
    known = {
        "github.action_path": str(ROOT),
        "github.event.pull_request.number": "" if pull_request is None else str(pull_request),
    }
    return known[expression]


def _condition(expression: str, inputs: dict[str, str]) -> bool:
    found = re.fullmatch(r"inputs\.([a-z-]+) (==|!=) '([a-z]*)'", expression)
    assert found is not None, expression
    return (inputs[found[1]] == found[3]) is (found[2] == "==")

"""The extension for VS Code beside the package: one version and licence, a lock file for any registry, no builds."""

from __future__ import annotations

import json
import pathlib
import subprocess
import tomllib
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXTENSION = ROOT / "editors" / "vscode"

pytestmark = pytest.mark.skipif(not EXTENSION.is_dir(), reason="an sdist holds the package alone")


def manifest() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    return read


def test_version_and_licence_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (manifest()["version"], manifest()["license"]) == (project["version"], project["license"])
    lock = json.loads((EXTENSION / "package-lock.json").read_text(encoding="utf-8"))
    assert (lock["version"], lock["packages"][""]["license"]) == (project["version"], project["license"])


def test_nothing_is_needed_at_run_time() -> None:
    assert "dependencies" not in manifest()


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((EXTENSION / "package-lock.json").read_text(encoding="utf-8"))
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert [name for name, package in lock["packages"].items() if name and "integrity" not in package] == []


def test_nothing_built_is_tracked() -> None:
    listed = subprocess.run(["git", "ls-files", "editors"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("needs a git checkout")
    tracked = [pathlib.PurePath(name) for name in listed.stdout.splitlines()]
    assert [
        str(one) for one in tracked if one.suffix == ".vsix" or {"node_modules", "dist", "build"} & {*one.parts}
    ] == []


def test_only_wishes_that_a_folder_may_not_set_say_what_is_run() -> None:
    """A folder that is not trusted must not choose the program."""
    settings = manifest()["contributes"]["configuration"]["properties"]
    restricted = manifest()["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert set(settings) - set(restricted) == {"firstfault.offerOnFailure"}

"""The house: three folders are one namespace package, and nothing strays into it."""

from __future__ import annotations

import pathlib
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORTIONS = ("ingest", "correlate", "report")
ALLOWED = {"report/firstfault/__main__.py"}


@pytest.mark.parametrize("portion", PORTIONS)
def test_no_file_lies_directly_in_a_portion(portion: str) -> None:
    files = {str(path.relative_to(ROOT)) for path in (ROOT / portion / "firstfault").iterdir() if path.is_file()}
    assert files <= ALLOWED, "an __init__.py here would hide the other portions"


@pytest.mark.parametrize("portion", PORTIONS)
def test_a_portion_holds_the_namespace_only(portion: str) -> None:
    assert [path.name for path in (ROOT / portion).iterdir() if path.name != "__pycache__"] == ["firstfault"]


@pytest.mark.parametrize("portion", PORTIONS)
def test_every_package_is_typed(portion: str) -> None:
    packages = [path.parent for path in (ROOT / portion / "firstfault").glob("*/__init__.py")]
    assert packages
    assert [package.name for package in packages if not (package / "py.typed").is_file()] == []


def test_the_wheel_and_the_checkers_name_all_portions() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert settings["hatch"]["build"]["dev-mode-dirs"] == list(PORTIONS)
    wheel = settings["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == [f"{portion}/firstfault" for portion in PORTIONS]
    assert settings["pytest"]["ini_options"]["pythonpath"] == list(PORTIONS)
    assert settings["mypy"]["mypy_path"].split(":") == list(PORTIONS)

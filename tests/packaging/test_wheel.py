"""What is built: the wheel from the sdist holds all of the package and nothing else, and works with the source out of
sight.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORTIONS = ("ingest", "correlate", "report")
SAMPLE = ROOT / "sample_logs" / "absent-shard-one-host"

pytestmark = pytest.mark.slow


def run(arguments: Sequence[str | os.PathLike[str]], folder: pathlib.Path) -> str:
    """Standard output of a command that must work, run where the checkout is not on the path."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    done = subprocess.run(
        [os.fspath(one) for one in arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in hidden},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the sdist of this tree, and the wheel made from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT], folder)
    return folder


@pytest.fixture(scope="session")
def wheel(built: pathlib.Path) -> pathlib.Path:
    (found,) = built.glob("*.whl")
    return found


def tracked(portion: str) -> set[str]:
    """Files of a portion as they should stand in the wheel."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--", f"{portion}/firstfault"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("needs a git checkout to know which files belong to the package")
    names = listed.stdout.splitlines()
    return {name.removeprefix(f"{portion}/") for name in names if (ROOT / name).is_file()}


def test_only_firstfault_reaches_site_packages(wheel: pathlib.Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"firstfault"}
    assert [name for name in names if name.endswith((".pyc", ".duckdb", ".orig"))] == []


@pytest.mark.parametrize("portion", PORTIONS)
def test_the_wheel_holds_every_file(wheel: pathlib.Path, portion: str) -> None:
    missing = tracked(portion) - set(zipfile.ZipFile(wheel).namelist())
    assert sorted(missing) == []


@pytest.mark.parametrize("suffix", [".toml", ".sql", ".json", "py.typed", ".log", ".js", ".css"])
def test_the_wheel_holds_each_kind_of_data(wheel: pathlib.Path, suffix: str) -> None:
    assert any(name.endswith(suffix) for name in zipfile.ZipFile(wheel).namelist())


def test_the_sdist_can_be_tested(built: pathlib.Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "tests/packaging/test_wheel.py"} <= names
    assert any(name.startswith("sample_logs/") for name in names)


def test_the_wheel_alone_diagnoses_a_job(wheel: pathlib.Path, tmp_path: pathlib.Path) -> None:
    place = tmp_path / "alone"
    venv.create(place, with_pip=True)
    run([place / "bin" / "python", "-m", "pip", "install", "--quiet", wheel], tmp_path)
    command = place / "bin" / "firstfault"
    where = run([place / "bin" / "python", "-c", "import firstfault.cli as one; print(one.__file__)"], tmp_path)
    assert where.startswith(str(place))
    answer = json.loads(run([command, "diagnose", SAMPLE / "logs", "--format", "json"], tmp_path))
    assert (answer["verdict"], answer["initiating"]["ranks"]) == ("identified", [6])
    assert "confidence" in run([command, "demo"], tmp_path)
    assert run([command, "version"], tmp_path).strip() == "0.1.0"
    without = subprocess.run([command, "mcp"], cwd=tmp_path, input="", capture_output=True, text=True, check=False)
    assert (without.returncode, without.stdout) == (1, "")
    assert "pip install 'firstfault[mcp]'" in without.stderr

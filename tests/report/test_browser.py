"""The page in a real Chromium: opens, fetches nothing, complains about nothing, zooms, fits a phone, in both themes.

Needs Chromium (Debian: apt-get install chromium); without one these tests are skipped and say so.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from firstfault.correlate.engine import diagnose
from firstfault.ingest import IngestOptions, ingest
from firstfault.report.html import to_html

from . import browser as chromium

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstfault.correlate.diagnosis import Diagnosis

    Make = Callable[..., Diagnosis]

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(chromium.executable() is None, reason="no Chromium here (apt-get install chromium)")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    try:
        with chromium.started(tmp_path_factory.mktemp("profile")) as one:
            yield one
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"Chromium does not start here: {error}")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a real job."""
    folder = tmp_path_factory.mktemp("page")
    ingest([ROOT / "sample_logs" / "mute-rank6" / "logs"], folder / "t.duckdb", IngestOptions(workers=1))
    (folder / "report.html").write_text(to_html(diagnose(folder / "t.duckdb")), encoding="utf-8")
    return folder / "report.html"


def test_it_opens_fetches_nothing_and_complains_about_nothing(browser: chromium.Browser, page: Path) -> None:
    browser.open(page)
    assert browser.asked_for() == []
    assert browser.complaints() == []
    assert browser.run("document.title") == "firstfault: first failure identified"
    assert browser.run("document.documentElement.classList.contains('js')")


def test_lanes_zoom_by_keys_and_buttons(browser: chromium.Browser, page: Path) -> None:
    browser.open(page)
    width = "document.querySelector('.lanes').viewBox.baseVal.width"
    first = browser.run(width)
    browser.run("document.querySelector('.plot').focus()")
    browser.key("+")
    assert browser.run(width) == pytest.approx(first / 2)
    browser.key("0")
    assert browser.run(width) > first
    browser.key("f")
    assert browser.run(width) == pytest.approx(first)
    browser.key("n")
    assert ".log:" in browser.run("document.querySelector('.swim figcaption').textContent")
    browser.run("document.querySelector('[data-do=out]').click()")
    assert browser.run(width) > first


def test_everything_that_acts_is_reached_by_the_tab_key(browser: chromium.Browser, page: Path) -> None:
    browser.open(page)
    reached = browser.run(
        "[...document.querySelectorAll('button, .plot[tabindex], a, summary')].every(one => one.tabIndex >= 0)"
    )
    assert reached


@pytest.mark.parametrize("width", [360, 390, 768])
def test_nothing_is_wider_than_a_phone(browser: chromium.Browser, page: Path, width: int) -> None:
    browser.open(page, width=width, height=800, phone=True)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_both_themes_have_readable_contrast(browser: chromium.Browser, page: Path) -> None:
    """WCAG 2 asks for 4.5 to 1 between text and ground."""
    contrast = """
        (() => {
            const light = (colour) => {
                const part = colour.match(/[0-9.]+/g).slice(0, 3).map(Number).map((value) => value / 255);
                const line = part.map((value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
                return 0.2126 * line[0] + 0.7152 * line[1] + 0.0722 * line[2];
            };
            const paper = light(getComputedStyle(document.body).backgroundColor);
            return Math.min(...["body", ".soft", ".names .root", "nav a", "figcaption", "dd"].map((name) => {
                const ink = light(getComputedStyle(document.querySelector(name)).color);
                return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
            }));
        })()
    """
    for dark in (False, True):
        browser.open(page, dark=dark)
        assert browser.run(contrast) >= 4.5


def test_hostile_text_stays_text(browser: chromium.Browser, identified: Make, tmp_path: Path) -> None:
    from firstfault.correlate.diagnosis import Evidence, Failure, RankFate

    evil = '</script><script>window.hit=1</script><img src=x onerror="window.hit=1"><svg onload="window.hit=1">\u202e'
    one = identified(
        evidence=(Evidence(evil, 1, evil, evil),),
        failure=Failure("cuda-oom", evil, evil),
        summary=evil,
        fates=(RankFate(0, evil, evil),),
    )
    (tmp_path / "evil.html").write_text(to_html(one), encoding="utf-8")
    browser.open(tmp_path / "evil.html")
    assert browser.run("window.hit === undefined && document.querySelectorAll('img').length === 0")
    assert browser.asked_for() == []


def test_a_job_of_hostile_names_and_lines_stays_text(browser: chromium.Browser, tmp_path: Path) -> None:
    """The same from the log on: file names, hosts, messages, exceptions."""
    evil = '</script><script>window.hit=1</script><img src=x onerror="window.hit=1">\u202e\x9b31m\x1b]0;x'
    logs = tmp_path / "logs" / "<img src=x onerror=window.hit=1>"
    logs.mkdir(parents=True)
    for rank in (0, 1):
        said = "".join(f"2025-05-12 10:00:{at:02d},000 - {evil} - INFO - step {at} {evil}\n" for at in range(9))
        error = f"[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. {evil}\n" if rank else ""
        (logs / f"rank{rank}<b onclick=window.hit=1>.log").write_text(said + error, encoding="utf-8")
    ingest([tmp_path / "logs"], tmp_path / "t.duckdb", IngestOptions(workers=1))
    (tmp_path / "evil.html").write_text(to_html(diagnose(tmp_path / "t.duckdb")), encoding="utf-8")
    browser.open(tmp_path / "evil.html")
    assert browser.run(
        "window.hit === undefined && document.querySelectorAll('img, [onclick], [onerror]').length === 0"
    )
    assert browser.asked_for() == []

"""The page in a real Chromium, as a person uses it: drop a folder, read the report, ask, paste, look into the catalog.

Needs Chromium (Debian: apt-get install chromium); without one these tests are skipped and say so.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import SAMPLE, Server

_SPEC = importlib.util.spec_from_file_location("browser", Path(__file__).parents[1] / "report" / "browser.py")
assert _SPEC is not None
assert _SPEC.loader is not None
chromium = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(chromium)

pytestmark = pytest.mark.skipif(chromium.executable() is None, reason="no Chromium here (apt-get install chromium)")
PICTURES = os.environ.get("FIRSTFAULT_TEST_PICTURES")
"""A folder for screenshots, for somebody who wants to look."""
PASTED = """[rank2]: step 7 | loss 2.1
[rank2]: Traceback (most recent call last):
[rank2]:   File "train.py", line 10, in <module>
[rank2]: KeyError: 'mask'
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[Any]:
    try:
        with chromium.started(tmp_path_factory.mktemp("profile")) as one:
            one.ask("Emulation.setDeviceMetricsOverride", width=1100, height=1000, deviceScaleFactor=1, mobile=False)
            yield one
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"Chromium does not start here: {error}")


def visit(browser: Any, address: str) -> None:
    browser.events.clear()
    browser.ask("Page.navigate", url=address)
    browser.wait_for("Page.loadEventFired")


def until(browser: Any, script: str, seconds: float = 90) -> Any:
    """The value of an expression once it is true."""
    ends = time.monotonic() + seconds
    while not (value := browser.run(script)):
        assert time.monotonic() < ends, (script, browser.run("document.body.innerText"))
        time.sleep(0.1)
    return value


def picture(browser: Any, name: str, whole: bool = False) -> None:
    if PICTURES:
        browser.picture(Path(PICTURES) / f"{name}.png", whole)


def shown(name: str) -> str:
    return f"!document.getElementById('{name}').hidden"


def drop(browser: Any, path: Path) -> None:
    """A folder dropped on the middle of the field."""
    place = browser.run("(() => { const r = document.getElementById('drop').getBoundingClientRect();"
                        " return [r.x + r.width / 2, r.y + r.height / 2]; })()")  # fmt: skip
    data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        browser.ask("Input.dispatchDragEvent", type=kind, x=place[0], y=place[1], data=data)


def test_a_dropped_folder_becomes_a_report_that_can_be_asked(browser: Any, server: Server) -> None:
    visit(browser, server.address)
    assert browser.run("location.search") == ""
    assert "Nothing leaves this machine" in browser.run("document.body.innerText")
    picture(browser, "start")
    drop(browser, SAMPLE)
    until(browser, shown("result"))
    until(browser, "document.querySelectorAll('#job-list li').length")
    time.sleep(1 if PICTURES else 0)
    picture(browser, "report", whole=True)
    answer = server.json("GET", f"/jobs/{browser.run('location.hash.slice(1)')}/diagnosis.json")[1]
    assert answer["evidence"][0]["path"] == "scr-2.log.gz"  # as `firstfault diagnose logs` cites it
    query = "SELECT rank, count(*) AS n FROM lines GROUP BY 1 ORDER BY 1"
    browser.run(f"document.getElementById('query').value = '{query}'; document.getElementById('ask').click()")
    until(browser, "document.querySelectorAll('#table tbody tr').length")
    assert browser.run("[...document.querySelectorAll('#table th')].map(x => x.textContent).join()") == "rank,n"
    browser.run("document.getElementById('query').value = 'DROP TABLE lines'; document.getElementById('ask').click()")
    assert "read-only" in until(
        browser, "(t => t.includes('asks') ? '' : t)(document.getElementById('sql-note').textContent)"
    )
    browser.run("document.getElementById('questions').selectedIndex = 4;"
                "document.getElementById('questions').dispatchEvent(new Event('change'))")  # fmt: skip
    until(browser, "document.querySelectorAll('#table tbody tr').length")
    browser.run("document.getElementById('query').scrollIntoView()")
    picture(browser, "sql")
    refused = "Failed to load resource: the server responded with a status of 400 (Bad Request)"
    assert browser.complaints() == [refused]  # the DROP


def test_the_report_stands_in_a_frame_of_its_own_origin(browser: Any, server: Server) -> None:
    assert browser.run("document.getElementById('report').contentDocument === null && frames.length === 1")
    own = f"http://127.0.0.1:{server.port}/"
    asked = [url for url in browser.asked_for() if not url.startswith("data:")]
    assert [url for url in asked if not url.startswith(own)] == []
    visit(browser, browser.run("document.getElementById('report').src"))
    assert browser.run("origin") == "null"
    assert browser.run("document.querySelectorAll('svg').length") > 0
    assert browser.complaints() == []
    picture(browser, "alone", whole=True)


def test_a_pasted_log_is_diagnosed(browser: Any, server: Server) -> None:
    visit(browser, f"http://127.0.0.1:{server.port}/")
    until(browser, "document.querySelectorAll('#job-list li').length")
    browser.run("document.getElementById('new').click()")
    until(browser, shown("give"))
    browser.run("document.getElementById('paste-go').click()")
    assert browser.run("document.getElementById('paste-note').textContent") == "nothing is pasted yet"
    browser.run("document.getElementById('paste').focus()")
    browser.ask("Input.insertText", text=PASTED)
    browser.run("document.getElementById('paste-go').click()")
    until(browser, shown("result"))
    answer = server.json("GET", f"/jobs/{browser.run('location.hash.slice(1)')}/diagnosis.json")[1]
    assert (answer["failure"]["class"], answer["initiating"]["ranks"]) == ("python-exception", [2])


def test_a_huge_paste_is_kept_beside_the_box_and_its_bound_is_said(browser: Any) -> None:
    browser.run("document.getElementById('new').click()")
    until(browser, shown("give"))
    browser.run(
        "(() => { const data = new DataTransfer(); data.setData('text/plain', 'line of a log\\n'.repeat(700000));"
        " document.getElementById('paste').dispatchEvent(new ClipboardEvent('paste', {clipboardData: data,"
        " bubbles: true, cancelable: true})); })()"
    )
    assert "9.3 MiB pasted; too long to be shown" in browser.run("document.getElementById('paste-note').textContent")
    browser.run("document.getElementById('paste-go').click()")
    said = until(browser, "document.getElementById('trouble').textContent")
    assert "more than 8 MiB in all" in said
    picture(browser, "trouble")


def test_a_job_is_removed(browser: Any, server: Server) -> None:
    before = len(server.json("GET", "/api/jobs")[1]["jobs"])
    visit(browser, f"http://127.0.0.1:{server.port}/")
    until(browser, f"document.querySelectorAll('#job-list li').length === {before}")
    browser.run("document.querySelector('#job-list button').click()")
    until(browser, f"document.querySelectorAll('#job-list li').length === {before - 1}")


def test_the_catalog_is_searched(browser: Any, server: Server) -> None:
    visit(browser, f"http://127.0.0.1:{server.port}/catalog/index.html")
    browser.run("document.getElementById('words').value = 'out of memory';"
                "document.getElementById('words').dispatchEvent(new Event('input'))")  # fmt: skip
    assert until(browser, "document.querySelectorAll('#found li').length") > 3
    picture(browser, "catalog")
    assert browser.complaints() == []


def test_the_page_fits_a_phone_and_the_dark(browser: Any, server: Server) -> None:
    browser.ask("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    visit(browser, f"http://127.0.0.1:{server.port}/")
    until(browser, "document.querySelectorAll('#job-list li').length")
    browser.run("document.getElementById('new').click()")
    until(browser, shown("give"))
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    picture(browser, "phone")

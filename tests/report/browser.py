"""A real Chromium, driven through its debugging pipe: loads a page, emulates theme and width, runs a little script.

The DevTools protocol over file descriptors 3 and 4: messages are JSON, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def executable() -> str | None:
    """The browser of this machine, of FIRSTFAULT_TEST_BROWSER where it is set; None where there is none."""
    wanted = os.environ.get("FIRSTFAULT_TEST_BROWSER")
    return wanted or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab of one browser."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._buffer = b""
        self._next = 0
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> Any:
        """One command and its answer; events that come in between are kept."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._next:
                assert "error" not in answer, answer["error"]
                return answer.get("result", {})
            self.events.append(answer)

    def _receive(self, wait: float = 60.0) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], wait)
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has gone"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def wait_for(self, event: str) -> None:
        """Until an event has come since the last `open`."""
        while not any(one.get("method") == event for one in self.events):
            self.events.append(self._receive())

    def open(self, page: Path, dark: bool = False, width: int = 1200, height: int = 900, phone: bool = False) -> float:
        """Load a file; the seconds until its load event."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[theme])
        self.events.clear()
        begun = time.monotonic()
        self.ask("Page.navigate", url=page.resolve().as_uri())
        self.wait_for("Page.loadEventFired")
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return time.monotonic() - begun

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def key(self, key: str) -> None:
        """A key pressed and released."""
        text = {"text": key} if len(key) == 1 else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, file: Path, whole: bool = False) -> None:
        """A screenshot as PNG."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def asked_for(self) -> list[str]:
        """Addresses that the page fetched, itself left out."""
        sent = [one["params"] for one in self.events if one.get("method") == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in sent if one["request"]["url"] != one["documentURL"]]

    def complaints(self) -> list[str]:
        """Errors and refusals that the console shows."""
        said = [one["params"]["entry"] for one in self.events if one.get("method") == "Log.entryAdded"]
        thrown = [one["params"] for one in self.events if one.get("method") == "Runtime.exceptionThrown"]
        return [entry["text"] for entry in said if entry["level"] == "error"] + [str(one) for one in thrown]


@contextlib.contextmanager
def started(folder: Path) -> Iterator[Browser]:
    """A browser with a new profile in a folder, ended afterwards."""
    program = executable()
    assert program is not None
    to_browser, ours_out = os.pipe()
    ours_in, from_browser = os.pipe()
    # the browser's ends may be 3 or 4 themselves; as copies far away neither is lost while the other moves
    far = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
    os.close(to_browser)
    os.close(from_browser)

    def hand_over() -> None:
        os.dup2(far[0], 3)
        os.dup2(far[1], 4)

    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(3, 4),
        preexec_fn=hand_over,
    )
    try:
        yield Browser(ours_out, ours_in)
    finally:
        process.kill()
        process.wait()
        for end in (*far, ours_out, ours_in):
            os.close(end)

"""The words of Python tracebacks: heads, frames, exceptions, and what a traceback says about itself."""

from __future__ import annotations

import re

HEAD = "Traceback (most recent call last)"
CHAINS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
FINAL = re.compile(r"^([A-Za-z_][\w.]{0,200})(?:\[[^\]]{0,80}\])?(?::(?: (.*))?)?$", re.S)
"""The line of the exception: its type and its message."""

_FRAME = re.compile(r'^\s*File "([^"]{1,4096})", line (\d{1,9})(?:, in (.{1,512}))?')
_LIBRARY = re.compile(r"(?:^|/)(?:site-packages|dist-packages)/|/lib(?:64)?/python\d|^<frozen |^<string>")

Frame = tuple[str, str, str]


def frame_of(text: str) -> Frame | None:
    """File, line and function of a frame's first line."""
    found = _FRAME.match(text)
    return (found[1], found[2], (found[3] or "").strip()) if found else None


def indent_of(text: str) -> int:
    """How far a line is indented."""
    return len(text) - len(text.lstrip(" "))


def exception_captures(name: str, message: str, frames: list[Frame]) -> dict[str, str]:
    """What is taken out of a traceback: the exception, and the last frame in the user's own code."""
    captures = {"exception": name, "text": message[:2000]}
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])]
    chosen = own[-1] if own else frames[-1] if frames else None
    if chosen is not None:
        captures["src_file"], captures["src_line"] = chosen[0], chosen[1]
        if chosen[2]:
            captures["function"] = chosen[2]
    return captures

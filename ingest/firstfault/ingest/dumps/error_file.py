"""The error file of torchelastic: one JSON object that a worker wrote when its entry point raised.

The exception is about the local rank of the folder; the time is whole seconds of UTC.
"""

from __future__ import annotations

from typing import Any

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.json_places import line_of, parse
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import TEXT_LIMIT, DumpContext, DumpProblem, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import epoch_stamp

NAME = compiled(r"(?:^|/)[\w.-]*error[\w.-]*\.json(?:\.\w+)?$")
EXCEPTION = compiled(r"^(?P<exception>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?::|$)")
FRAME = compiled(r'^ *File "(?P<src_file>[^"]+)", line (?P<src_line>\d+), in (?P<function>\S+)')
LIBRARY = ("site-packages/", "dist-packages/", "/lib/python", "<frozen")


class ErrorFile:
    """Reader of `error.json`."""

    name = "elastic-error-file"
    kind = "error-file"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
        if not text.startswith(b"{") or b'"message"' not in head:
            return False
        return (
            b'"extraInfo"' in head or b'"py_callstack"' in head or (bool(NAME.search(path)) and b'"timestamp"' in head)
        )

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        value = parse(data)
        if not isinstance(value, dict):
            raise ValueError("no object")
        inner: Any = value.get("message")
        stamp, stack, line = value.get("timestamp"), "", line_of(value, "message")
        code = value.get("errorCode")
        if isinstance(inner, dict):
            extra = inner.get("extraInfo")
            if isinstance(extra, dict):
                stamp = extra.get("timestamp", stamp)
                stack = extra.get("py_callstack", "")
            code = inner.get("errorCode", code)
            line, inner = line_of(inner, "message"), inner.get("message")
        if not isinstance(inner, str):
            raise ValueError("no message")
        problems: list[DumpProblem] = []
        when = None
        try:
            when = epoch_stamp(float(stamp)) if isinstance(stamp, str | int | float) else None
        except ValueError:
            problems.append(DumpProblem("odd-record", "notice", "the time of the error file is no number"))
        captures: dict[str, str] = {}
        lines = stack.splitlines()[-400:] if isinstance(stack, str) else []
        text = inner.strip() or (lines[-1].strip() if lines else "")
        if match := EXCEPTION.match(text[:400]):
            captures["exception"] = match["exception"] or ""
        if isinstance(code, int) and not isinstance(code, bool):
            captures["exitcode"] = str(code)
        captures |= _frame(lines)
        if ctx.local_rank is not None:
            captures["local_rank"] = str(ctx.local_rank)
        if when is not None:
            captures["epoch_s"] = str(when.ns // 10**9)
        signal = DumpSignal(
            line, Event.EXCEPTION, text[:TEXT_LIMIT], level="ERROR", rank=ctx.rank, local_rank=ctx.local_rank,
            attempt=ctx.attempt,captures=captures,
        ).at(when)  # fmt: skip
        return DumpRows((signal,), problems=tuple(problems))


def _frame(lines: list[str]) -> dict[str, str]:
    """The innermost frame of the user's own code, else the innermost."""
    found = [match.groupdict() for line in lines if (match := FRAME.match(line[:1000]))]
    own = [frame for frame in found if not any(part in (frame["src_file"] or "") for part in LIBRARY)]
    chosen = (own or found)[-1:]
    return {key: value for frame in chosen for key, value in frame.items() if value is not None}

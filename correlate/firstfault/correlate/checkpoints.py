"""What a traceback says of a checkpoint: the same exception is another failure where it is raised by loading or by
saving one.

A tensor of another size in `load_state_dict` is a checkpoint that does not fit the model; a write that is refused in
`save_checkpoint` is a checkpoint that was not saved. The frames say which, the message often does not.
"""

from __future__ import annotations

import re

import duckdb

from firstfault.catalog.model import FALLBACK_ENTRIES
from firstfault.correlate.candidate import Candidate
from firstfault.correlate.model import Signal

_SAVES = re.compile(
    r", in (?:_?(?:async_)?save_?(?:checkpoint|ckpt|state|model|pretrained|sharded|to_|snapshot)?\w*"
    r"|_?write_checkpoint\w*|dump_checkpoint|\w{0,40}checkpoint\w{0,20}_save\w*)\b"
    r"|serialization\.py\S*, line \d+, in (?:save|_save)\b"
)
_LOADS = re.compile(
    r", in (?:_?load_?(?:checkpoint|ckpt|state_?dict|model_state|model_checkpoint|weights|optim\w*)\w*"
    r"|_?(?:set|restore)_?(?:model_|optim\w{0,6}_)?(?:state_dict|checkpoint|state)\w*|_load_model_state_dict|resume\w*"
    r"|_?restore\w*|copy_?(?:from_)?state\w*)\b"
)
_MISFIT = re.compile(
    r"(?i)\bsize|\bshape|mismatch|missing key|unexpected key|must match|\bdoes not match|KeyError|different number"
)
_REFUSED = frozenset({"disk-quota"})
_MISFITS = frozenset({"torch-tensor-mismatch"})
_OS_ERRORS = frozenset({"PermissionError", "TimeoutError", "OSError", "IOError"})
_LINES = 400


def by_frames(con: duckdb.DuckDBPyConnection, candidates: list[Candidate]) -> None:
    """Give errors that are raised in loading or saving a checkpoint the class of that, in place."""
    for one in candidates:
        if one.rule not in ("own-error-witnessed", "own-error", "own-error-ambiguous", "common-error"):
            continue
        first = one.signals[0][0] if one.signals else None
        if first is None or first.id < 0 or first.last_line <= first.first_line:
            continue
        fallback = first.entry in FALLBACK_ENTRIES
        if not (fallback or first.entry in _REFUSED | _MISFITS) or one.cls.startswith("checkpoint-"):
            continue
        frames = _frames(con, first)
        if _SAVES.search(frames) and not _LOADS.search(frames):
            refused = fallback and first.captures.get("exception") in _OS_ERRORS
            if first.entry in _REFUSED or (refused and not first.captures.get("text", "").startswith("[Errno 28]")):
                one.cls = "checkpoint-save-failed"
                one.for_.append("it was raised while a checkpoint was being saved")
        elif _LOADS.search(frames) and not _SAVES.search(frames):
            said = f"{first.captures.get('exception', '')} {first.captures.get('text', '')}"
            if first.entry in _MISFITS or (fallback and _MISFIT.search(said[:2000])):
                one.cls = "checkpoint-mismatch"
                one.for_.append("it was raised while a checkpoint was being loaded")


def _frames(con: duckdb.DuckDBPyConnection, signal: Signal) -> str:
    rows = con.execute(
        "SELECT left(message, 300) FROM line_rows WHERE source_id = ? AND line >= ? AND line < ? "
        "AND message LIKE '%, in %' ORDER BY line",
        [signal.source.id, max(signal.first_line, signal.last_line - _LINES), signal.last_line],
    ).fetchall()
    return "\n".join(row[0] for row in rows)

"""Lines that quote an error and do not report one: commands and their echo, source code, rules, prompts and samples.

What a line quotes is no evidence, so no entry of the catalog speaks for it; facts do. A real line that looks like one
of these is lost to the entries, so only shapes that programs do not give to their reports are named here.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from firstfault.catalog.exact import ExactPattern

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

_FILE = r"(?:[\w./-]{1,200}\.(?:py|sh|c|cc|cpp|cu|cuh|h|hpp|go|rs|toml|ya?ml|json|md|rst|txt|log):\d{1,6}:\s*)?"
_COMMANDS = r"echo|printf|cat|test|\[|(?:e|f|z|pcre)?grep|rg|awk|sed|dmesg|journalctl|tail|head"
_KEYS = (
    r"role|prompts?|completions?|messages|input_ids|question|answer|chosen|rejected|instruction|responses?"
    r"|generated_text|conversations?"
)
_SHAPES = (
    rf"^\+{{1,4}} (?:{_COMMANDS})\b",  # bash -x
    rf"^(?:\$|[\w.@-]{{1,60}}[$#]) (?:sudo )?(?:{_COMMANDS})\b",  # a prompt
    r"^(?:>>>|In \[\d+\]:) ",
    r"\| ?(?:sudo )?(?:[efz]?grep|rg|awk|sed) ",
    r"(?:^|[\s:;(])(?:[efz]?grep|rg) -{1,2}[\w-]+ ",
    rf"^\s*{_FILE}raise [A-Z][\w.]*(?:\(|$)",
    rf"^\s*{_FILE}except [\w.(][\w., ()]*(?: as \w+)?:",
    rf"^\s*{_FILE}(?:el)?if [^\n]*:\s*$",
    rf"^\s*{_FILE}(?:logger|logging|log|LOG|warnings|self\.log(?:ger)?)\.\w+\(",
    rf"^\s*{_FILE}(?:print|TORCH_CHECK\w*|CHECK\w*|assert\w*|throw std::\w+)\(",
    rf"^(?:\s*{_FILE[:-1]}|\s{{4,}})# \S",
    r'^\s*[rf]?"""',
    r"^\s*[\w.-]{0,40}(?:pattern|regexp?|alert_rule|signature)s?\s*[:=]\s*\S",
    r"--[\w-]{0,40}(?:regexp?|pattern)[= ]",
    r"\bUserWarning: resource_tracker: ",  # what was cleaned up already when a process ended
    rf"""["'](?:{_KEYS})["']\s*:\s""",
    r"""\b(?:prompts?|responses?|completion|generated_text)\s?=\s?[rbf]?["']""",
    r"<\|(?:user|assistant|system|im_start|im_end|endoftext|eot_id|start_header_id)\|>",
    r"(?i)^(?:\[?(?:user|assistant|human|prompt|response|completion|question|answer|generated text|sampled?)\]?)"
    r"(?: ?#?\d{1,9})?: ?\S",
)


def is_quoting(message: str) -> bool:
    """Whether the message only quotes what it says."""
    return _shapes().search(message) is not None


def quoting(messages: pl.Series) -> NDArray[np.bool_]:
    """Which of the messages only quote what they say."""
    return _shapes().holds(messages)


@cache
def _shapes() -> ExactPattern:
    return ExactPattern("|".join(f"(?:{shape})" for shape in _SHAPES))

"""Masks what must not leave a machine in an alert or in a kept command line: tokens, keys, passwords.

`collect.sh` masks the same things with `sed` where no Python is; a test holds both to the same examples.
"""

from __future__ import annotations

import re2  # type: ignore[import-untyped]

MASK = "[masked]"
_PASS = r"[A-Za-z0-9_.-]*(?:passw(?:or)?d|passphrase|secret|credentials?)"
_KEY = r"[A-Za-z0-9_.-]*(?:token|secret[_-]?key|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key)"
_VALUE = r"[A-Za-z0-9+/=._~-]{8,}"
_MASKED = tuple(
    (re2.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(://[^/@\s:]*:)[^/@\s]+@", rf"\1{MASK}@"),
        (rf"(?i)\b(bearer\s+){_VALUE}", rf"\1{MASK}"),
        (rf"(?i)(authorization[\"']?\s*[=:]\s*[\"']?(?:basic\s+)?){_VALUE}", rf"\1{MASK}"),
        (rf"(?i)({_PASS}[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&]+", rf"\1{MASK}"),
        (rf"(?i)({_KEY}[\"']?\s*[=:]\s*[\"']?){_VALUE}", rf"\1{MASK}"),
        (rf"(?i)(--?(?:{_PASS}|{_KEY})\s+){_VALUE}", rf"\1{MASK}"),
        (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", MASK),
        (r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|nvapi-)[A-Za-z0-9_-]{16,}", MASK),
        (r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}", MASK),
        (r"(hooks\.slack\.com/services/)[A-Za-z0-9/_-]+", rf"\1{MASK}"),
    )
)
"""A count of tokens is no secret: a key has eight characters and more, and its name ends where the value begins."""


def masked(text: str) -> str:
    """The text with each secret that can be told from ordinary words replaced by `[masked]`."""
    for pattern, replacement in _MASKED:
        text = pattern.sub(replacement, text)
    return text

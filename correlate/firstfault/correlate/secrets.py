"""Secrets in text: cloud keys, hub tokens, passwords, bearer headers. They are masked in every output, always.

Each pattern runs in linear time. Forms are those that the issuers document; what only looks random is left alone, since
checksums and identifiers of logs look random too. A name such as `eos_token_id` is no secret, nor is a count of tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import re2  # type: ignore[import-untyped]

MASK = "[masked]"

_KNOWN = (
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",  # access key ids of AWS
    r"\bhf_[A-Za-z0-9]{30,}\b",  # Hugging Face
    r"\bapi_org_[A-Za-z0-9]{30,}\b",
    r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{36,}\b",  # GitHub
    r"\bgithub_pat_[A-Za-z0-9_]{22,}\b",
    r"\bglpat-[A-Za-z0-9_-]{20,}",  # GitLab
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",  # Slack
    r"\bhooks\.slack\.com/services/[A-Za-z0-9/_-]+",
    r"\bAIza[0-9A-Za-z_-]{35}",  # Google
    r"\bya29\.[0-9A-Za-z_-]{20,}",
    r"\bnvapi-[A-Za-z0-9_-]{20,}",  # NVIDIA
    r"\bsk-[A-Za-z0-9_-]{20,}",  # OpenAI and those who took over its form
    r"\bpypi-[A-Za-z0-9_-]{40,}",
    r"\bnpm_[A-Za-z0-9]{36}\b",
    r"\bdckr_pat_[A-Za-z0-9_-]{20,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",  # JSON web tokens
    r"\b(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/=]{20,}",  # Azure
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[A-Za-z0-9+/=\s\\]|\\n)*(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
)
_BEHIND = (
    r"(?i)(\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer |basic |token |aws4-hmac-sha256 )?)([^\s\"',}]{6,})",
    r"(?i)(\bbearer\s{1,3})([A-Za-z0-9._~+/=-]{16,})",
    r"(?i)(://[^/\s:@\"']{0,100}:)([^/\s@\"']{1,200})(@)",
    r"(?i)([?&](?:sig|signature|x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature|access_token"
    r"|token|api_?key|key)=)([A-Za-z0-9%._~+/=-]{8,})",
    r"(?i)((?:aws[_-]?)?secret[_-]?(?:access[_-]?)?key[\"']?\s{0,3}[:=]\s{0,3}[\"']?)([A-Za-z0-9/+=_-]{8,})",
    r"(?i)([A-Za-z0-9_.-]{0,40}(?:passwords?|passwd|passphrase|secrets?)[\"']?\s{0,3}[:=]\s{0,3}[\"']?)"
    r"([^\s\"',;(){}\[\]<>]{4,})",
    r"(?i)(--(?:password|token|api-key|secret)[ =])([^\s\"']{4,})",
)
_NAMED = (
    r"(?i)([A-Za-z0-9_.-]{0,40}(?:token|api[_-]?key|access[_-]?key|auth[_-]?key|private[_-]?key|wandb[_-]?key)[\"']?"
    r"\s{0,3}[:=]\s{0,3}[\"']?)([A-Za-z0-9._~+/=-]{16,})"
)
_HINTS = (
    "key", "token", "secret", "pass", "authorization", "bearer", "://", "akia", "asia", "abia", "acca", "hf_", "gh",
    "glpat", "xox", "slack", "aiza", "ya29", "sk-", "eyj", "pypi-", "npm_", "dckr", "api_org", "nvapi", "sig",
)  # fmt: skip


@cache
def _engines() -> tuple[Any, Any, Any]:
    options = re2.Options()
    options.max_mem = 64 << 20
    known = re2.compile("|".join(f"(?:{one})" for one in _KNOWN), options)
    return known, tuple(re2.compile(one, options) for one in _BEHIND), re2.compile(_NAMED, options)


def masked(text: str) -> str:
    """Text with its secrets replaced."""
    if len(text) < 8:
        return text
    lower = text.lower()
    if not any(hint in lower for hint in _HINTS):
        return text
    known, behind, named = _engines()
    text = known.sub(MASK, text)
    for one in behind:
        text = one.sub(_keep_name, text)
    return str(named.sub(_random_only, text))


def _keep_name(match: Any) -> str:
    value = match.group(2)
    tail = match.group(3) if match.re.groups > 2 else ""
    return f"{match.group(1)}{value if value.startswith(MASK[:-1]) else MASK}{tail}"


def _random_only(match: Any) -> str:
    """A value with letters and digits; a word, a path or a number behind such a name is no secret."""
    value = match.group(2)
    letters, digits = any(char.isalpha() for char in value), any(char.isdigit() for char in value)
    plain = value.count("/") > 1 or value.startswith(MASK[:-1])
    return str(match.group(0)) if plain or not (letters and digits) else f"{match.group(1)}{MASK}"


def mapped(value: Any, change: Any, skip: frozenset[str] = frozenset()) -> Any:
    """Frozen values with every string changed, but for fields of these names."""
    if isinstance(value, str):
        return change(value) if type(value) is str else value
    if isinstance(value, tuple):
        return tuple(mapped(one, change, skip) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: mapped(getattr(value, field.name), change, skip)
            for field in fields(value)
            if field.name not in skip
        }
        return replace(value, **changed)
    return value


class LineMasker:
    """Makes lines of one log fit to show, one after the other: the body of a private key spans several."""

    def __init__(self, change: Callable[[str], str] = masked) -> None:
        self._change = change
        self._inside = False

    def __call__(self, line: str) -> str:
        """The line, or a mask for a line of a key."""
        if "PRIVATE KEY-----" in line:
            if "-----END " in line:
                self._inside = False
                return MASK
            if "-----BEGIN " in line:
                self._inside = True
                return MASK
        if self._inside and len(line) < 200 and " " not in line.strip():
            return MASK
        self._inside = False
        return self._change(line)

"""JSON that may be printed: characters that act on a terminal or turn text round are escapes in it.

Readers get the same texts; JSON itself would let those characters through as they are.
"""

from __future__ import annotations

import json
import re
from typing import Any

_ACTING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def safe_json(value: Any, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """A value as JSON text. Raises ValueError for numbers that JSON does not know."""
    text = json.dumps(value, indent=indent, sort_keys=sort_keys, ensure_ascii=False, allow_nan=False)
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

"""Which of some short texts stand anywhere in a chunk, in one pass that is many times faster than looking for each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import hyperscan


class Marks:
    """Texts to be looked for. Made ready at the first look."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._texts = tuple(texts)

    def found(self, data: bytes) -> set[bytes]:
        """Those of the texts that stand in the data."""
        numbers: set[int] = set()

        def hit(number: int, start: int, end: int, flags: int, context: Any) -> None:
            numbers.add(number)

        self._database.scan(data, match_event_handler=hit)
        return {self._texts[number] for number in numbers}

    @cached_property
    def _database(self) -> Any:
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        flag = hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_DOTALL
        count = len(self._texts)
        database.compile(
            expressions=[re.escape(text) for text in self._texts],
            ids=list(range(count)),
            elements=count,
            flags=[flag] * count,
        )
        return database

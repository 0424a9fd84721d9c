"""Which of some short texts stand anywhere in a chunk, in one pass that is many times faster than looking for each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import hyperscan


class Marks:
    """Texts to be looked for, those in `folded` whatever the case of their letters. Made ready at the first look."""

    def __init__(self, texts: Sequence[bytes], folded: Sequence[bytes] = ()) -> None:
        self._texts = (*texts, *folded)
        self._plain = len(texts)
        self._known = {*((text, False) for text in texts), *((text, True) for text in folded)}

    def __contains__(self, one: tuple[bytes, bool]) -> bool:
        return one in self._known

    def found(self, data: bytes) -> set[tuple[bytes, bool]]:
        """Those of the texts that stand in the data, each with whether it is a folded one."""
        if not self._texts:
            return set()
        numbers: set[int] = set()

        def hit(number: int, start: int, end: int, flags: int, context: Any) -> None:
            numbers.add(number)

        self._database.scan(data, match_event_handler=hit)
        return {(self._texts[number], number >= self._plain) for number in numbers}

    @cached_property
    def _database(self) -> Any:
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        count, flag = len(self._texts), hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_DOTALL
        flags = [flag] * self._plain + [flag | hyperscan.HS_FLAG_CASELESS] * (count - self._plain)
        database.compile(
            expressions=[re.escape(text) for text in self._texts],
            ids=list(range(count)),
            elements=count,
            flags=flags,
        )
        return database

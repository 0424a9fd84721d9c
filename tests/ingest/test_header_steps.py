"""A step that stands in a header is progress too."""

from __future__ import annotations

from typing import Any


def test_iterations_of_megatron(read: Any) -> None:
    line = (
        " [2025-05-12 10:11:1{0}] iteration        {0}/  500000 | consumed samples:        61440 | lm loss: 2.3E+00 |\n"
    )
    made = read({"rank_3.log": line.format(4) + "step 5 loss 2.3\n" + line.format(6)})
    assert made.rows("SELECT line, step FROM progress ORDER BY line") == [(1, 4), (2, 5), (3, 6)]
    assert made.column("SELECT message FROM line_rows WHERE line = 1") == [
        "consumed samples:        61440 | lm loss: 2.3E+00 |"
    ]

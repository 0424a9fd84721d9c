"""Bends inputs: pieces cut, doubled, moved, overwritten, mixed with those of other inputs."""

from __future__ import annotations

import random

WORDS = (
    b"\0", b"\n", b"\r", b"\r\n", b"\x1b[31m", b"\x1b]0;x\x07", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xae",
    b"<script>", b"]]>", b"|", b"`", b"=1+1", b"%s", b"{", b"}", b"[", b"]", b'"', b"'", b"\\", b"\\u0000", b"\\ud800",
    b"-1", b"0", b"9" * 20,b"1e999", b"NaN", b"null", b"true", b"2025-05-12 10:11:12", b"[rank3]: ", b"rank=9999999",
    b"Traceback (most recent call last):\n", b"CUDA out of memory", b"Watchdog caught collective operation timeout",
    b"; DROP TABLE lines", b" UNION SELECT * FROM read_text('/etc/passwd')", b"'secret.csv'", b"--", b"/*",
    b"cposix\nsystem\n", b"\x93", b"R.", b"(?P<a>", b"{1,1000}", b"[^\\n]*", b"(a+)+$", b"\\x{10ffff}",
)  # fmt: skip


def bent(pool: list[bytes], rng: random.Random, most: int) -> bytes:
    """One of the inputs with some of its pieces cut, doubled, moved, overwritten or taken from another."""
    data = bytearray(rng.choice(pool))
    for _ in range(rng.choice((1, 1, 2, 3, 5, 9, 20))):
        at = rng.randrange(len(data) + 1)
        size = min(rng.choice((1, 1, 2, 4, 8, 32, 200, 2000)), len(data) - at)
        kind = rng.randrange(8)
        if kind == 0 and size:
            del data[at : at + size]
        elif kind == 1:
            data[at:at] = rng.choice(WORDS)
        elif kind == 2 and size:
            data[at : at + size] = rng.choice(WORDS)
        elif kind == 3 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 4:
            data[at:at] = data[at : at + size] * rng.choice((1, 2, 50))
        elif kind == 5:
            other = rng.choice(pool)
            start = rng.randrange(len(other) + 1)
            data[at : at + size] = other[start : start + rng.choice((4, 40, 400, 4000))]
        elif kind == 6:
            data[at : at + size] = rng.randbytes(size)
        elif at:
            del data[at:]
    return bytes(data[:most])

"""Reads lines in which a process introduces itself by names and values: `rank=3 local_rank=3 pid=4711 host=node-07`.

The order is free; a value that stands behind a blank must look like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_KEYS = {
    "rank": "rank", "globalrank": "rank", "worldrank": "rank", "procid": "rank",
    "localrank": "local_rank", "localid": "local_rank", "local": "local_rank",
    "worldsize": "world_size", "world": "world_size", "nranks": "world_size", "nprocs": "world_size",
    "noderank": "node_rank", "grouprank": "node_rank", "nodeid": "node_rank",
    "pid": "pid", "size": "world_size",
    "host": "host", "hostname": "host", "node": "host", "nodename": "host", "on": "host",
    "gpu": "gpu", "cuda": "gpu", "npu": "gpu", "device": "gpu",
}  # fmt: skip
_PAIR = re.compile(
    r"(?i)(?<![\w.-])(global[_ ]?rank|world[_ ]?rank|local[_ ]?rank|node[_ ]?rank|group[_ ]?rank|rank|world[_ ]?size"
    r"|pid|host ?name|host|node ?name|node|gpu|cuda|npu|device|on|size|world|nranks|local)"
    r"['\"]?(?P<mark> ?[=:] ?| )['\"]?(?P<value>[\w.:-]{1,253}(?:/\d{1,7})?)"
)
_NUMBER = re.compile(r"(?:cuda:|npu:|gpu:|#)?(\d{1,15})(?:/(\d{1,7}))?")
_HOST = re.compile(r"[A-Za-z0-9][\w.-]{0,252}")
_NO_HOST = re.compile(r"(?i)(?:gpu|cuda|npu|cpu|xpu|hpu|device|step|epoch|rank|iter)[:_-]?\d*")


def pairs_of(text: str) -> dict[str, int | str]:
    """What is named with a value, by the names of captures; the first value of a name counts."""
    found: dict[str, int | str] = {}
    if "Pool(host=" in text:
        return found  # the server of a request
    for match in _PAIR.finditer(text):
        word = re.sub(r"[_ ]", "", match[1].lower())
        name, text = _KEYS[word], match["value"].rstrip(".:,-")
        for key, value in _values(name, text, match["mark"].isspace(), named=word.startswith("host")):
            found.setdefault(key, value)
    return found


def _values(name: str, text: str, bare: bool, *, named: bool = False) -> Iterator[tuple[str, int | str]]:
    if name == "host":
        if _NO_HOST.fullmatch(text) and not (named and "-" in text):
            return  # a host may be called npu-43, where the line calls it a host
        if _HOST.fullmatch(text) and not text.isdigit() and (not bare or any(letter.isdigit() for letter in text)):
            yield name, text
        return
    number = _NUMBER.fullmatch(text)
    if number is not None:
        yield name, int(number[1])
        if name == "rank" and number[2]:
            yield "world_size", int(number[2])

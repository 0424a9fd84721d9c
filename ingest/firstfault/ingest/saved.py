"""Turns what a worker made of its files into plain JSON and back, for other processes, machines and later runs.

Only the types that are named in the fields are ever made: nothing in the text can name a type or call anything.
A dataclass becomes the list of its fields, so that a saved part is only read by the version that wrote it.
"""

from __future__ import annotations

import base64
import sys
import types
import typing
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

Read = Callable[[Any], Any]


class SavedError(ValueError):
    """A text that does not hold what it should."""


def to_plain(value: Any) -> Any:
    """A value of the known types as JSON can hold it."""
    kind = type(value)
    if value is None or kind in (str, int, bool, float):
        return value
    if kind is bytes:
        return base64.b85encode(value).decode("ascii")
    if is_dataclass(value):
        return [to_plain(getattr(value, name)) for name in _names(cast(Any, kind))]
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return [[to_plain(key), to_plain(one)] for key, one in value.items()]
    if isinstance(value, list | tuple):
        return [to_plain(one) for one in value]
    raise SavedError(f"a {kind.__name__} cannot be saved")


def from_plain(kind: Any, value: Any) -> Any:
    """The value of a type out of what `to_plain` made of it. Raises SavedError where it is something else."""
    try:
        return _reader(kind)(value)
    except (TypeError, ValueError, LookupError, RecursionError) as error:
        raise SavedError(f"not what was saved: {error}") from error


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


@cache
def _reader(kind: Any) -> Read:
    """How a type is read; made once for each."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in (str, int, bool, float):
        return _exactly(kind)
    if kind is bytes:
        return lambda value: base64.b85decode(_exactly(str)(value))
    if origin in (Union, types.UnionType):
        return _optional(inner)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _record(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind
    if origin is list:
        one = _reader(inner[0])
        return lambda value: [one(item) for item in _list(value)]
    if origin is tuple:
        return _tuple(inner)
    if origin is np.ndarray:
        return lambda value: np.array(_list(value), dtype=np.int64)
    if origin is Counter:
        key = _reader(inner[0])
        return lambda value: Counter({key(name): _exactly(int)(count) for name, count in _list(value)})
    if origin in (dict, Mapping, typing.get_origin(Mapping[str, str])):
        key, one = _reader(inner[0]), _reader(inner[1])
        return lambda value: {key(name): one(item) for name, item in _list(value)}
    raise SavedError(f"{kind} cannot be read")


def _exactly(kind: type) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise SavedError(f"{kind.__name__} expected, {type(value).__name__} found")
        return value

    return read


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise SavedError(f"list expected, {type(value).__name__} found")
    return value


def _optional(kinds: tuple[Any, ...]) -> Read:
    rest = [kind for kind in kinds if kind is not type(None)]
    if len(rest) != 1:
        raise SavedError(f"{kinds} cannot be read")
    one = _reader(rest[0])
    return lambda value: None if value is None else one(value)


def _tuple(inner: tuple[Any, ...]) -> Read:
    if len(inner) == 2 and inner[1] is Ellipsis:
        one = _reader(inner[0])
        return lambda value: tuple(one(item) for item in _list(value))
    readers = [_reader(kind) for kind in inner]
    return lambda value: tuple(read(item) for read, item in zip(readers, _list(value), strict=True))


def _record(kind: Any) -> Read:
    # a field may have the name of a type: names are looked up in the module, not in the class
    hints = get_type_hints(kind, vars(sys.modules[kind.__module__]), {})
    names = _names(cast(Any, kind)) if is_dataclass(kind) else kind._fields
    readers = [_reader(hints[name]) for name in names]

    def read(value: Any) -> Any:
        return kind(*[one(item) for one, item in zip(readers, _list(value), strict=True)])

    return read

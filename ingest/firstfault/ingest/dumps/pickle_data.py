"""Reads the plain data of a pickle without running anything that it says.

Only opcodes that build containers, strings and numbers are known; whatever would import, call or build an object is an
error, but for the few list wrappers of TorchScript, which stand for their argument. The number of steps is bounded, and
memory grows only with the bytes that are really there (no opcode may reserve any).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

STEP_LIMIT = 12_000_000
TORCH_LISTS = frozenset({"build_intlist", "build_doublelist", "build_boollist", "restore_type_tag"})


class PickleError(ValueError):
    """Bytes that are no pickle of plain data."""


class _Mark:
    __slots__ = ()


class _Wrapper:
    """A TorchScript function that is named but never called."""

    __slots__ = ()


MARK = _Mark()
WRAPPER = _Wrapper()


def load(data: bytes) -> Any:
    """The value of a pickle."""
    return _Machine(data).run()


class _Machine:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        ops = OPS
        data, size = self._data, len(self._data)
        for _ in range(STEP_LIMIT):
            if self._at >= size:
                raise PickleError("the pickle ends too early")
            op = data[self._at]
            self._at += 1
            if op == 0x2E:  # STOP
                if len(self._stack) != 1:
                    raise PickleError("the pickle does not hold one value")
                return self._stack[0]
            step = ops.get(op)
            if step is None:
                raise PickleError(f"opcode {op:#04x} is not plain data")
            step(self)
        raise PickleError("more steps than any dump needs")

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._data):
            raise PickleError("the pickle ends too early")
        piece = self._data[self._at : self._at + count]
        self._at += count
        return piece

    def text_line(self) -> bytes:
        end = self._data.find(b"\n", self._at)
        if end < 0 or end - self._at > 1 << 20:
            raise PickleError("the pickle ends too early")
        piece = self._data[self._at : end]
        self._at = end + 1
        return piece

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        if not self._stack or self._stack[-1] is MARK:
            raise PickleError("a value is missing")
        return self._stack.pop()

    def above_mark(self) -> list[Any]:
        for at in range(len(self._stack) - 1, -1, -1):
            if self._stack[at] is MARK:
                found = self._stack[at + 1 :]
                del self._stack[at:]
                return found
        raise PickleError("a mark is missing")

    def top(self, kind: type) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kind):
            raise PickleError(f"a {kind.__name__} is missing")
        return self._stack[-1]

    def keep(self, index: int) -> None:
        if not self._stack:
            raise PickleError("a value is missing")
        self._memo[index] = self._stack[-1]

    def recall(self, index: int) -> None:
        if index not in self._memo:
            raise PickleError("an unknown value is recalled")
        self.push(self._memo[index])

    def pairs(self) -> None:
        found = self.above_mark()
        target = self.top(dict)
        _set(target, found)

    def build(self, make: Callable[[list[Any]], Any], count: int) -> None:
        parts = [self.pop() for _ in range(count)]
        self.push(make(parts[::-1]))

    def wrapper(self, module: str, name: str) -> None:
        if module != "torch.jit._pickle" or name not in TORCH_LISTS:
            raise PickleError(f"the pickle asks for {module}.{name}"[:200])
        self.push(WRAPPER)

    def unwrap(self) -> None:
        arguments = self.pop()
        if self.pop() is not WRAPPER or not isinstance(arguments, tuple) or not arguments:
            raise PickleError("the pickle asks for a call")
        self.push(arguments[0])

    def set_one(self) -> None:
        value, key = self.pop(), self.pop()
        _set(self.top(dict), [key, value])

    def whole_dict(self) -> None:
        found: dict[Any, Any] = {}
        _set(found, self.above_mark())
        self.push(found)

    def append_one(self) -> None:
        value = self.pop()
        self.top(list).append(value)

    def extend(self) -> None:
        found = self.above_mark()
        self.top(list).extend(found)

    def integer_line(self) -> None:
        text = self.text_line().rstrip(b"L")
        if text in (b"00", b"01"):
            self.push(text == b"01")
        else:
            self.push(_integer(text))

    def string_line(self) -> None:
        text = self.text_line()
        self.push(text.strip(b"'\"").decode("utf-8", "replace"))

    def global_line(self) -> None:
        module, name = self.text_line(), self.text_line()
        self.wrapper(module.decode("utf-8", "replace"), name.decode("utf-8", "replace"))

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        self.wrapper(str(module)[:200], str(name)[:200])


def _set(target: dict[Any, Any], items: list[Any]) -> None:
    if len(items) % 2:
        raise PickleError("a value is missing")
    for at in range(0, len(items), 2):
        key = items[at]
        if not isinstance(key, str | int | float | bool | bytes | None):
            raise PickleError("a key is no plain value")
        target[key] = items[at + 1]


def _integer(text: bytes) -> int:
    if len(text) > 40:
        raise PickleError("a number is too long")
    return int(text)


def _long(raw: bytes) -> int:
    if len(raw) > 32:
        raise PickleError("a number is too long")
    return int.from_bytes(raw, "little", signed=True)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _pop_mark(m: _Machine) -> None:
    m.above_mark()


OPS: dict[int, Callable[[_Machine], Any]] = {
    0x80: lambda m: m.take(1),  # PROTO
    0x95: lambda m: m.take(8),  # FRAME
    0x28: lambda m: m.push(MARK),  # MARK
    0x30: lambda m: m.pop(),  # POP
    0x31: _pop_mark,  # POP_MARK
    0x4E: lambda m: m.push(None),  # NONE
    0x88: lambda m: m.push(True),  # NEWTRUE
    0x89: lambda m: m.push(False),  # NEWFALSE
    0x4B: lambda m: m.push(m.number("<B")),  # BININT1
    0x4D: lambda m: m.push(m.number("<H")),  # BININT2
    0x4A: lambda m: m.push(m.number("<i")),  # BININT
    0x8A: lambda m: m.push(_long(m.take(m.number("<B")))),  # LONG1
    0x8B: lambda m: m.push(_long(m.take(m.number("<i")))),  # LONG4
    0x47: lambda m: m.push(struct.unpack(">d", m.take(8))[0]),  # BINFLOAT
    0x58: lambda m: m.push(_text(m.take(m.number("<I")))),  # BINUNICODE
    0x8C: lambda m: m.push(_text(m.take(m.number("<B")))),  # SHORT_BINUNICODE
    0x8D: lambda m: m.push(_text(m.take(m.number("<Q")))),  # BINUNICODE8
    0x54: lambda m: m.push(_text(m.take(m.number("<i")))),  # BINSTRING
    0x55: lambda m: m.push(_text(m.take(m.number("<B")))),  # SHORT_BINSTRING
    0x42: lambda m: m.push(m.take(m.number("<I"))),  # BINBYTES
    0x43: lambda m: m.push(m.take(m.number("<B"))),  # SHORT_BINBYTES
    0x8E: lambda m: m.push(m.take(m.number("<Q"))),  # BINBYTES8
    0x7D: lambda m: m.push({}),  # EMPTY_DICT
    0x5D: lambda m: m.push([]),  # EMPTY_LIST
    0x29: lambda m: m.push(()),  # EMPTY_TUPLE
    0x8F: lambda m: m.push([]),  # EMPTY_SET
    0x90: lambda m: m.extend(),  # ADDITEMS
    0x91: lambda m: m.push(m.above_mark()),  # FROZENSET
    0x64: lambda m: m.whole_dict(),  # DICT
    0x6C: lambda m: m.push(m.above_mark()),  # LIST
    0x74: lambda m: m.push(tuple(m.above_mark())),  # TUPLE
    0x85: lambda m: m.build(tuple, 1),  # TUPLE1
    0x86: lambda m: m.build(tuple, 2),  # TUPLE2
    0x87: lambda m: m.build(tuple, 3),  # TUPLE3
    0x61: lambda m: m.append_one(),  # APPEND
    0x65: lambda m: m.extend(),  # APPENDS
    0x73: lambda m: m.set_one(),  # SETITEM
    0x75: lambda m: m.pairs(),  # SETITEMS
    0x71: lambda m: m.keep(m.number("<B")),  # BINPUT
    0x72: lambda m: m.keep(m.number("<I")),  # LONG_BINPUT
    0x94: lambda m: m.keep(len(m._memo)),  # MEMOIZE
    0x68: lambda m: m.recall(m.number("<B")),  # BINGET
    0x6A: lambda m: m.recall(m.number("<I")),  # LONG_BINGET
    0x49: lambda m: m.integer_line(),  # INT
    0x4C: lambda m: m.integer_line(),  # LONG
    0x46: lambda m: m.push(float(m.text_line())),  # FLOAT
    0x53: lambda m: m.string_line(),  # STRING
    0x56: lambda m: m.push(m.text_line().decode("utf-8", "replace")),  # UNICODE
    0x70: lambda m: m.keep(_integer(m.text_line())),  # PUT
    0x67: lambda m: m.recall(_integer(m.text_line())),  # GET
    0x63: lambda m: m.global_line(),  # GLOBAL
    0x93: lambda m: m.stack_global(),  # STACK_GLOBAL
    0x52: lambda m: m.unwrap(),  # REDUCE
}

"""Reads a pattern of the catalog (RE2 syntax) into a small tree of byte sets, repeats, sequences and choices.

The tree speaks of bytes, since triggers run over undecoded chunks. What a tree cannot say exactly it says more widely,
so that every text the pattern matches is matched by its tree too: a character outside ASCII is one to four bytes.
What RE2 knows and Hyperscan does not (or the other way round) is refused with the place in the pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

NEWLINE = 1 << 10
ASCII = (1 << 128) - 1
HIGH = ((1 << 256) - 1) ^ ASCII


def _mask(chars: str) -> int:
    mask = 0
    for char in chars:
        mask |= 1 << ord(char)
    return mask


DIGITS = _mask("0123456789")
_LOWER = _mask("abcdefghijklmnopqrstuvwxyz")
_UPPER = _LOWER >> 32
WORD = DIGITS | _LOWER | _UPPER | _mask("_")
_SPACE = _mask("\t\f\r ")
_PUNCT = _mask("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_PERL = {"d": DIGITS, "w": WORD, "s": _SPACE}
_POSIX = {
    "alnum": DIGITS | _LOWER | _UPPER,
    "alpha": _LOWER | _UPPER,
    "ascii": ASCII,
    "blank": _mask("\t "),
    "cntrl": ((1 << 32) - 1) | 1 << 127,
    "digit": DIGITS,
    "graph": DIGITS | _LOWER | _UPPER | _PUNCT,
    "lower": _LOWER,
    "print": DIGITS | _LOWER | _UPPER | _PUNCT | _mask(" "),
    "punct": _PUNCT,
    "space": _SPACE | _mask("\v"),
    "upper": _UPPER,
    "word": WORD,
    "xdigit": DIGITS | _mask("abcdefABCDEF"),
}
_CONTROL = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "a": 7}


class PatternError(ValueError):
    """A pattern that cannot be used, with the offset inside it."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(f"{why} (at offset {at})")
        self.why = why
        self.at = at


@dataclass(frozen=True, slots=True)
class Atom:
    """One byte out of `mask`; where `wide`, one character of one to four bytes out of it."""

    mask: int
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Boundary:
    """A position and no text: '^', '$', 'b' or 'B'."""

    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """`node`, `low` to `high` times; `high` None is without end."""

    node: Node
    low: int
    high: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """One after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of them."""

    options: tuple[Node, ...]


Node = Atom | Boundary | Repeat | Sequence | Choice


def parse(pattern: str) -> tuple[Node, tuple[str, ...]]:
    """The tree of a pattern and the names of its captures. Raises PatternError where the engines would not agree."""
    parser = _Parser(pattern)
    node = parser.choice(fold=False)
    if parser.at < len(pattern):
        raise PatternError("unmatched ')'", parser.at)
    return node, tuple(parser.names)


_HEX = frozenset("0123456789abcdefABCDEF")


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.names: list[str] = []

    def peek(self, ahead: str = "") -> str:
        if ahead:
            return ahead if self.text.startswith(ahead, self.at) else ""
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        char = self.peek()
        if not char:
            raise PatternError("the pattern ends too early", self.at)
        self.at += 1
        return char

    def choice(self, fold: bool) -> Node:
        """Alternatives up to ')' or the end; an inline flag such as (?i) holds from there to the end of the group."""
        options: list[Node] = []
        items: list[Node] = []
        while True:
            char = self.peek()
            if char in ("", ")", "|"):
                options.append(items[0] if len(items) == 1 else Sequence(tuple(items)))
                items = []
                if char != "|":
                    return options[0] if len(options) == 1 else Choice(tuple(options))
                self.at += 1
                continue
            node, fold = self.item(fold)
            if node is not None:
                items.append(self.repeated(node))

    def item(self, fold: bool) -> tuple[Node | None, bool]:
        start = self.at
        char = self.take()
        if char == "(":
            return self.group(fold, start)
        if char == "[":
            return self.char_class(fold), fold
        if char == ".":
            return Atom(ASCII & ~NEWLINE | HIGH, wide=True), fold
        if char in "^$":
            return Boundary(char), fold
        if char in "*+?":
            raise PatternError(f"nothing to repeat before {char!r}", start)
        if char == "\\":
            return self.escape(fold), fold
        return literal(char, fold), fold

    def group(self, fold: bool, start: int) -> tuple[Node | None, bool]:
        inner = fold
        if self.peek("?"):
            self.at += 1
            if self.peek("P<") or (self.peek("<") and self.text[self.at + 1 : self.at + 2] not in ("=", "!")):
                self.at = self.text.index("<", self.at) + 1
                end = self.text.find(">", self.at)
                if end < 0:
                    raise PatternError("a group name without '>'", start)
                self.names.append(self.text[self.at : end])
                self.at = end + 1
            elif self.peek("P=") or self.peek("P>"):
                raise PatternError("back-references are not regular: both engines refuse them", start)
            elif self.peek() in ("=", "!", "<", ">"):
                raise PatternError("look-around is not regular: write what the text is instead", start)
            else:
                on = True
                while (flag := self.take()) not in (":", ")"):
                    if flag == "-":
                        on = False
                    elif flag == "i":
                        inner = on
                    elif flag not in "smU":
                        raise PatternError(f"unknown flag {flag!r}", self.at - 1)
                if flag == ")":
                    return None, inner
        node = self.choice(inner)
        if not self.peek(")"):
            raise PatternError("a group without ')'", start)
        self.at += 1
        return node, fold

    def repeated(self, node: Node) -> Node:
        while True:
            bounds = self.quantifier()
            if bounds is None:
                return node
            if self.peek("?"):
                self.at += 1
            elif self.peek("+"):
                raise PatternError("possessive repeats are known to neither engine", self.at)
            node = Repeat(node, *bounds)

    def quantifier(self) -> tuple[int, int | None] | None:
        char = self.peek()
        if char and char in "*+?":
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        if char != "{":
            return None
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : max(end, self.at)].partition(",")
        if end < 0 or not low.isdigit() or (high and not high.isdigit()):
            return None  # a brace that repeats nothing is text
        if any(not one.isascii() or (len(one) > 1 and one[0] == "0") for one in (low, high)):
            raise PatternError("write the numbers of a repeat without a leading zero", self.at)
        self.at = end + 1
        return int(low), int(high) if high else None if comma else int(low)

    def escape(self, fold: bool) -> Node:
        char = self.take()
        if char in "bB":
            return Boundary(char)
        if char == "A":
            return Boundary("^")
        if char == "z":
            return Boundary("$")
        if char == "Q":
            end = self.text.find("\\E", self.at)
            quoted = self.text[self.at : end if end >= 0 else len(self.text)]
            self.at = min(len(self.text), self.at + len(quoted) + 2)
            return Sequence(tuple(literal(one, fold) for one in quoted))
        known = self.class_escape(char)
        return known if known is not None else literal(chr(self.code(char)), fold)

    def class_escape(self, char: str) -> Atom | None:
        """The set of \\d, \\W, \\p{..} and their like; None where the escape is one character."""
        if char in _PERL:
            return Atom(_PERL[char])
        if char.lower() in _PERL and char.isupper():
            return Atom(ASCII & ~_PERL[char.lower()] & ~NEWLINE | HIGH, wide=True)
        if char in "pP":  # Unicode classes: any character is a superset, and the exact pattern decides
            if self.take() == "{":
                self.at = self.text.find("}", self.at) + 1 or len(self.text)
            return Atom(ASCII & ~NEWLINE | HIGH, wide=True)
        return None

    def code(self, char: str) -> int:
        start = self.at - 1
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "x":
            digits = self.text[self.at : self.at + 2]
            self.at += 2
            if digits.startswith("{"):
                end = self.text.find("}", self.at)
                digits = self.text[self.at - 1 : end] if end >= 0 else ""
                self.at = end + 1
            if not 1 <= len(digits) <= 6 or set(digits) - _HEX:
                raise PatternError("bad \\x escape", start)
            return int(digits, 16)
        if char.isascii() and char.isalnum():
            raise PatternError(f"the engines do not agree on '\\{char}'", start)
        return ord(char)

    def char_class(self, fold: bool) -> Node:
        start = self.at - 1
        negated = bool(self.peek("^"))
        self.at += negated
        mask, wide, first = 0, False, True
        while first or not self.peek("]"):
            first = False
            if self.peek("[:"):
                end = self.text.find(":]", self.at)
                name = self.text[self.at + 2 : end]
                if end < 0 or name not in _POSIX:
                    raise PatternError("an unknown POSIX class", self.at)
                self.at = end + 2
                mask |= _POSIX[name]
                continue
            char = self.take()
            if char == "\\":
                char = self.take()
                known = self.class_escape(char)
                if known is not None:
                    mask |= known.mask
                    wide |= known.wide
                    continue
                low = self.code(char)
            else:
                low = ord(char)
            high = low
            if self.peek("-") and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                char = self.take()
                high = self.code(self.take()) if char == "\\" else ord(char)
            if high < low:
                raise PatternError("a range that runs backwards", start)
            wide |= high >= 128
            mask |= ((1 << min(high + 1, 128)) - 1) & ~((1 << min(low, 128)) - 1)
        self.at += 1
        mask &= ASCII
        if fold:
            mask = _folded(mask)
        if negated:
            mask, wide = ASCII & ~mask, True  # which characters outside ASCII remain is left to the exact pattern
        mask &= ~NEWLINE
        if not mask and not wide:
            raise PatternError("a class that no character of a line can match", start)
        return Atom(mask | (HIGH if wide else 0), wide)


@lru_cache(maxsize=1024)
def literal(char: str, fold: bool) -> Node:
    """One character as it stands, in both cases where `fold`; outside ASCII the bytes of its UTF-8 form."""
    if char == "\n":
        raise PatternError("a newline: patterns are searched in one line", 0)
    if ord(char) < 128:
        mask = 1 << ord(char)
        return Atom(_folded(mask) if fold else mask)
    forms = sorted({char, char.lower(), char.upper()} if fold else {char})
    options = tuple(Sequence(tuple(Atom(1 << byte) for byte in form.encode())) for form in forms)
    return options[0] if len(options) == 1 else Choice(options)


def _folded(mask: int) -> int:
    return mask | (mask & _LOWER) >> 32 | (mask & _UPPER) << 32


def takes_digits_alike(node: Node) -> bool:
    """Whether no place of the tree tells one digit from another."""
    match node:
        case Atom(mask):
            return mask & DIGITS in (0, DIGITS)
        case Boundary():
            return True
        case Repeat(inner):
            return takes_digits_alike(inner)
        case Sequence(parts) | Choice(parts):
            return all(map(takes_digits_alike, parts))

"""The prompt of `firstfault sql`: history, completion of tables and columns, queries over several lines."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from firstfault.cli.messages import CommandError, say
from firstfault.cli.sql import answer
from firstfault.cli.sql_help import COMMANDS
from firstfault.timeline.gate import Gate, Stuck, open_gate
from firstfault.timeline.relations import questions

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

FORMATS = ("table", "csv", "json", "markdown")
_KEYWORDS = """
SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN LEFT USING ON AND OR NOT IN IS NULL BETWEEN LIKE ILIKE AS WITH UNION
DISTINCT QUALIFY HAVING DESC ASC INTERVAL DESCRIBE SUMMARIZE EXPLAIN count min max sum avg mode list any_value
arg_min arg_max row_number() date_trunc epoch string_agg regexp_matches contains
"""
_LAST_WORD = re.compile(r"[\w.]{0,100}$")
_AFTER_FROM = re.compile(r"(?i)\b(?:from|join|describe|summarize)\s+\w{0,100}$")
_ALIAS = re.compile(r"(?i)\b(?:from|join)\s+(\w+)(?:\s+(?:as\s+)?(\w+))?")


class Names(Completer):
    """Completes commands, tables and views, columns of those that the query names, and a few words of SQL."""

    def __init__(self, columns: dict[str, list[str]]) -> None:
        self._columns = columns

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """What may stand at the cursor."""
        before = document.text_before_cursor
        if before.startswith("."):
            yield from self._commands(before)
            return
        found = _LAST_WORD.search(before)
        word = found[0] if found else ""
        alias, dot, start = word.rpartition(".")
        named = {
            (other or name).lower(): name.lower()
            for name, other in _ALIAS.findall(document.text[:4000])
            if name.lower() in self._columns
        }
        named |= {name: name for name in named.values()}
        if dot:
            yield from _matching(start, self._columns.get(named.get(alias.lower(), ""), []), "column")
        elif _AFTER_FROM.search(before[-300:]):
            yield from _matching(start, sorted(self._columns), "table or view")
        elif start:
            seen = sorted({column for name in set(named.values()) for column in self._columns[name]})
            yield from _matching(start, seen, "column")
            yield from _matching(start, sorted(self._columns), "table or view")
            yield from _matching(start, _KEYWORDS.split(), "")

    def _commands(self, before: str) -> Iterator[Completion]:
        command, blank, rest = before.partition(" ")
        if not blank:
            yield from _matching(command, COMMANDS, "")
        elif command == ".format":
            yield from _matching(rest, FORMATS, "")
        elif command == ".schema":
            yield from _matching(rest, sorted(self._columns), "")
        elif command in (".examples", ".run"):
            yield from _matching(rest, [one.name for one in questions()], "")


def _matching(start: str, words: Iterable[str], meta: str) -> Iterator[Completion]:
    for word in words:
        if word.lower().startswith(start.lower()) and word != start:
            yield Completion(word, -len(start), display_meta=meta)


def complete_query(text: str) -> bool:
    """Whether Enter runs a text: a command, nothing, or a query that ends with a semicolon."""
    text = text.strip()
    return not text or text.startswith(".") or text.endswith(";") or text.lower() in ("exit", "quit", "help")


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if complete_query(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def history_file() -> Path:
    """Where the history lies, by the XDG convention."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "firstfault" / "sql_history"


def _history() -> History:
    """The history file for this user alone; one in memory where it cannot be written."""
    file = history_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND, 0o600))
    except OSError as error:
        say(f"{file}: {error.strerror}; the history is kept for this session only")
        return InMemoryHistory()
    return FileHistory(file)


class Shell:
    """Reads queries and prints answers until Ctrl-D."""

    def __init__(
        self,
        database: Path,
        format_: str,
        seconds: float | None,
        memory: str,
        keys: Input | None = None,
        screen: Output | None = None,
    ) -> None:
        self._database, self._format, self._seconds, self._memory = database, format_, seconds, memory
        self._keys, self._screen = keys, screen

    def run(self) -> None:
        """The whole session; a query that does not stop costs its connection, not the session."""
        session: PromptSession[str] | None = None
        while True:
            with open_gate(self._database, seconds=self._seconds, memory=self._memory) as gate:
                if session is None:
                    session = self._session(gate)
                    say("A query ends with a semicolon; .examples lists what can be asked; Ctrl-D leaves")
                try:
                    self._loop(session, gate)
                except Stuck as stuck:
                    say(f"{stuck}; the timeline is opened again")
                    continue
                return

    def _session(self, gate: Gate) -> PromptSession[str]:
        return PromptSession(
            "sql> ",
            multiline=True,
            prompt_continuation=lambda width, number, soft: "...> ",
            history=_history(),
            auto_suggest=AutoSuggestFromHistory(),
            completer=Names(columns_of(gate)),
            complete_while_typing=False,
            lexer=PygmentsLexer(SqlLexer),
            key_bindings=_keys(),
            color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
            input=self._keys,
            output=self._screen,
        )

    def _loop(self, session: PromptSession[str], gate: Gate) -> None:
        while True:
            try:
                text = session.prompt().strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            text = {"exit": ".quit", "quit": ".quit", "help": ".help"}.get(text.lower().rstrip(";"), text)
            if text.startswith(".quit"):
                return
            if text.startswith(".format"):
                self._choose(text.removeprefix(".format").strip())
            elif text:
                self._answer(gate, text)

    def _choose(self, name: str) -> None:
        if name in FORMATS:
            self._format = name
        else:
            say(f".format {', '.join(FORMATS)}; now {self._format}")

    def _answer(self, gate: Gate, text: str) -> None:
        try:
            answer(gate, text, self._format)
        except CommandError as error:
            say(str(error))
        except KeyboardInterrupt:
            say("stopped")
        except BrokenPipeError:
            raise
        finally:
            sys.stdout.flush()


def columns_of(gate: Gate) -> dict[str, list[str]]:
    """Columns of each table and view, in their order."""
    found: dict[str, list[str]] = {}
    query = "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal ORDER BY table_name, column_index"
    rows: Iterable[tuple[Any, ...]] = gate.ask(query).rows
    for name, column in rows:
        if column not in found.setdefault(str(name).lower(), []):
            found[str(name).lower()].append(str(column))
    return found

"""A copy of a timeline with secrets masked and, where asked for, names replaced: what may be passed on.

Every text column goes through the same function as the report, so the same name has the same stand-in in both.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import duckdb

from firstfault.correlate.secrets import LineMasker
from firstfault.timeline import create_schema

_PLAIN = frozenset(
    {
        ("sources", "kind"), ("sources", "format"), ("sources", "stream"), ("sources", "fingerprint"),
        ("line_rows", "stamp_kind"), ("line_rows", "level"), ("line_rows", "format"), ("line_rows", "entry"),
        ("line_rows", "class"), ("signal_rows", "entry"), ("signal_rows", "fact"), ("signal_rows", "event"),
        ("signal_rows", "class"), ("signal_rows", "role"), ("signal_rows", "level"), ("signal_rows", "stamp_kind"),
        ("identities", "how"), ("problems", "kind"), ("problems", "severity"), ("meta", "key"), ("nodes", "kind"),
        ("edges", "rule"), ("edges", "strength"), ("hypotheses", "class"), ("hypotheses", "entry"),
        ("hypotheses", "rule"), ("collectives", "state"),
    }
)  # fmt: skip
"""Columns whose words come from firstfault itself."""

_MARKS = ("roots", "made_of", "counts")
"""Facts by which a timeline is taken for that of its logs: a copy is not, and must not be read on from."""


def known_hosts(database: Path) -> list[str]:
    """Every name of a host, pod or alias that a timeline holds."""
    with duckdb.connect(str(database), read_only=True) as con:
        rows = con.execute(
            """
            SELECT DISTINCT unnest([host, alias, pod]) AS name FROM identities
            UNION SELECT DISTINCT host FROM line_rows UNION SELECT DISTINCT host FROM sources
            UNION SELECT DISTINCT host FROM signal_rows ORDER BY 1
            """
        ).fetchall()
    return [row[0] for row in rows if row[0]]


def copy_timeline(
    database: Path, target: Path, text: Callable[[str], str], path: Callable[[str], str] | None = None
) -> None:
    """Write the copy, complete or not at all. `path` is for paths of logs, `text` for everything else."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        with duckdb.connect() as con:
            con.execute("SET threads = 1")  # stand-ins are numbered in the order of rows
            con.execute(f"ATTACH '{_quoted(temporary)}' AS fresh (STORAGE_VERSION 'v1.2.0')")
            con.execute(f"ATTACH '{_quoted(database)}' AS old (READ_ONLY)")
            con.execute("USE fresh")
            create_schema(con)
            _functions(con, text, path or text)
            tables = con.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = 'old' ORDER BY table_name"
            ).fetchall()
            made = {row[0] for row in con.execute("SHOW TABLES FROM fresh").fetchall()}
            for (table,) in tables:
                # what the schema itself fills (its own guide) is there already
                filled = table in made and con.execute(f"SELECT 1 FROM fresh.{table} LIMIT 1").fetchone()
                if table in made and not filled:
                    only = f" WHERE key NOT IN {_MARKS}" if table == "meta" else ""
                    values = _columns(con, table)
                    con.execute(f"INSERT INTO fresh.{table} BY NAME SELECT {values} FROM old.{table}{only}")
            con.execute("USE memory")
            con.execute("DETACH fresh")
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _functions(con: duckdb.DuckDBPyConnection, text: Callable[[str], str], path: Callable[[str], str]) -> None:
    def every(values: list[str | None]) -> list[str | None]:
        return [None if one is None else text(one) for one in values]

    con.create_function("ff_text", text, ["VARCHAR"], "VARCHAR")
    con.create_function("ff_line", LineMasker(text).__call__, ["VARCHAR"], "VARCHAR")
    con.create_function("ff_path", path, ["VARCHAR"], "VARCHAR")
    con.create_function("ff_texts", every, ["VARCHAR[]"], "VARCHAR[]")


def _columns(con: duckdb.DuckDBPyConnection, table: str) -> str:
    chosen = []
    for name, kind, *_ in con.execute(f"DESCRIBE old.{table}").fetchall():
        value = f'"{name}"'
        if (table, name) in _PLAIN:
            chosen.append(value)
        elif kind == "VARCHAR":
            function = {"path": "ff_path", "message": "ff_line"}.get(name, "ff_text")
            chosen.append(f"{function}({value}) AS {value}")
        elif kind == "VARCHAR[]":
            chosen.append(f"ff_texts({value}) AS {value}")
        elif kind == "MAP(VARCHAR, VARCHAR)":
            chosen.append(f"map(map_keys({value}), ff_texts(map_values({value}))) AS {value}")
        else:
            chosen.append(value)
    return ", ".join(chosen)

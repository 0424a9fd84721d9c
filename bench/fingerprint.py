"""Says whether two ways to read the same logs give the same timeline: one digest a table, of its rows in order.

    python bench/fingerprint.py PATH... > before.txt

Each PATH is read as one job. Compare what is printed before and after a change of the code.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

TABLES = {
    "sources": "* EXCLUDE (fingerprint)",
    "line_rows": "*",
    "signal_rows": "* EXCLUDE (captures), map_entries(captures) AS captures",
    "identities": "*",
    "progress": "*",
    "problems": "*",
}
"""By name: the columns that have to be the same."""


def fingerprint(database: Path) -> dict[str, str]:
    """The number of rows and the digest of each table of a timeline."""
    import duckdb
    import polars as pl

    found: dict[str, str] = {}
    with duckdb.connect(str(database), read_only=True) as connection:
        for table, columns in TABLES.items():
            rows = pl.DataFrame(connection.sql(f"SELECT {columns} FROM {table} ORDER BY ALL").to_arrow_table())
            found[table] = f"{len(rows)} {hashlib.sha256(rows.write_ndjson().encode()).hexdigest()[:20]}"
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--code", type=Path, default=ROOT, help="a checkout to take firstfault from")
    options = parser.parse_args()
    sys.path[:0] = [str(options.code / portion) for portion in ("ingest", "correlate", "report")]
    from firstfault.ingest import IngestOptions
    from firstfault.ingest.run import ingest

    for path in options.paths:
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder) / "timeline.duckdb"
            ingest([path], database, IngestOptions(workers=options.workers))
            for table, digest in fingerprint(database).items():
                sys.stdout.write(f"{path.name} {table} {digest}\n")


if __name__ == "__main__":
    main()

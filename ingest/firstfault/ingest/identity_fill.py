"""Completes lines with who wrote them: rank, host and attempt by what their headers say, their place and their time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

Numbers = npt.NDArray[np.uint64]

KEY_TYPES: dict[str, type[pl.DataType]] = {
    "source_id": pl.Int32, "host": pl.String, "rank": pl.Int32, "local_rank": pl.Int32, "pid": pl.Int64,
    "task": pl.Int32,
}  # fmt: skip
KEYS = tuple(KEY_TYPES)
CLAIMS: dict[str, type[pl.DataType]] = {
    "c_line": pl.Int64, "c_rank": pl.Int32, "c_local": pl.Int32, "c_host": pl.String,
}  # fmt: skip
FILLED = ("host", "rank", "local_rank", "attempt")
_LINE_BITS = 40


def with_keys(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with all columns that name a writer."""
    missing = [pl.lit(None, dtype=KEY_TYPES[name]).alias(name) for name in KEYS if name not in frame.columns]
    return frame.with_columns(missing).with_columns(pl.col(name).cast(KEY_TYPES[name]) for name in KEYS)


class Filler:
    """The four small tables that say whose lines are, looked up by numbers: a join takes several times as long."""

    def __init__(self, resolved: pl.DataFrame, ranges: pl.DataFrame, dated: pl.DataFrame, claims: pl.DataFrame) -> None:
        self._ranges, self._dated = ranges, dated
        hashed = _hashes(resolved)
        order = np.argsort(hashed, kind="stable")
        self._writers, self._answers = hashed[order], resolved.drop(KEYS)[order]
        places = _places(claims["source_id"], claims["c_line"])
        self._claimed, self._claims = places, claims.drop("source_id", "c_line")

    def fill(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with host, rank, local_rank and attempt completed; it needs source_id and line."""
        own = frame.with_columns(pl.col(name).cast(KEY_TYPES[name]) for name in KEYS if name in frame.columns)
        told = [name for name in (*KEYS, "line", "attempt", "stamp_ns", "near_ns") if name in frame.columns]
        out = with_keys(own.select(told)).with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("_row"))
        if "attempt" not in told:
            out = out.with_columns(pl.lit(None, dtype=pl.Int32).alias("attempt"))
        out = out.hstack(_looked_up(self._answers, self._writers, _hashes(out)))
        out = out.hstack(_looked_up(self._claims, self._claimed, _places(out["source_id"], out["line"])))
        out = _join_ranges(out, self._ranges)
        out = _join_dates(out, self._dated)
        local_prefix = pl.col("k_local_prefix").fill_null(False)
        unsaid = pl.col("host").is_null()
        claimed = pl.col("c_rank").is_not_null() & pl.col("rank").is_null()
        said_local = pl.when(claimed).then(pl.col("c_local")).otherwise(pl.coalesce("local_rank", "k_local"))
        out = out.with_columns(
            host=pl.when(unsaid & claimed)
            .then(pl.coalesce("r_host", "d_host", "c_host", "k_host"))
            .when(unsaid)
            .then(pl.coalesce("r_host", "d_host", "k_host"))
            .otherwise(pl.coalesce("k_host", "host")),
            rank=pl.when(local_prefix)
            .then(pl.coalesce("k_rank", "c_rank"))
            .otherwise(pl.coalesce("rank", "c_rank", "k_rank")),
            local_rank=pl.when(local_prefix).then(pl.coalesce("k_local", "c_local")).otherwise(said_local),
            attempt=pl.coalesce(pl.col("attempt").cast(pl.Int32), "r_attempt", "d_attempt", "k_attempt"),
        )
        return own.with_columns(out.select(FILLED))


def _hashes(keys: pl.DataFrame) -> Numbers:
    """One number for each combination of keys."""
    hashed: Numbers = keys.select(pl.struct(pl.col(name).cast(kind) for name, kind in KEY_TYPES.items()).hash())[
        "source_id"
    ].to_numpy()
    return hashed


def _places(sources: pl.Series, lines: pl.Series) -> Numbers:
    """Source and line as one number."""
    source, line = (one.to_numpy().astype(np.int64).astype(np.uint64) for one in (sources, lines))
    places: Numbers = (source << np.uint64(_LINE_BITS)) | line
    return places


def _looked_up(table: pl.DataFrame, keys: Numbers, wanted: Numbers) -> pl.DataFrame:
    """The rows of a table by its sorted keys, nulls where there is none."""
    if not len(keys):
        return table.clear(len(wanted))
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    missing = keys[at] != wanted
    if missing.all():
        return table.clear(len(wanted))
    index = pl.Series(at)
    if missing.any():
        index = index.set(pl.Series(missing), None)
    return table.select(pl.all().gather(index))


def _join_ranges(out: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    if not len(ranges):
        return out.with_columns(pl.lit(None, pl.Int32).alias("r_attempt"), pl.lit(None, pl.String).alias("r_host"))
    found = (
        out.select("_row", "source_id", pl.col("line").cast(pl.Int64))
        .sort("line")
        .join_asof(
            ranges.sort("_from"),
            left_on="line",
            right_on="_from",
            by="source_id",
            strategy="backward",
            check_sortedness=False,
        )
    )
    return out.join(found.select("_row", "r_attempt", "r_host"), on="_row", how="left", maintain_order="left")


def _join_dates(out: pl.DataFrame, dated: pl.DataFrame) -> pl.DataFrame:
    stamps = [pl.col(name) for name in ("stamp_ns", "near_ns") if name in out.columns]
    if not len(dated) or not stamps:
        return out.with_columns(pl.lit(None, pl.Int32).alias("d_attempt"), pl.lit(None, pl.String).alias("d_host"))
    sources = dated.select("source_id").unique()
    found = (
        out.select("_row", "source_id", pl.coalesce(stamps).cast(pl.Int64).alias("_at"))
        .join(sources, on="source_id", how="semi")
        .with_columns(pl.col("_at").fill_null(-(2**62)))
        .sort("_at")
        .join_asof(
            dated.sort("_since"),
            left_on="_at",
            right_on="_since",
            by="source_id",
            strategy="backward",
            check_sortedness=False,
        )
    )
    return out.join(found.select("_row", "d_attempt", "d_host"), on="_row", how="left", maintain_order="left")

"""The rules that a trace must keep to be replayable: each is a column, what is bad in it, and what would be right.

It knows the canonical columns only; how arrivals are given is `arrival`'s affair. The first fault is refused, naming
file, row and column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from replay.errors import TraceError
from replay.traces.faults import FILE, ROW, refuse_rows
from replay.traces.table import COLUMNS, HashScope

Rule = tuple[str, pl.Expr, str]  # column, which rows are bad, "must be ..."


def column_values(frame: pl.DataFrame, name: str, files: Sequence[Path]) -> pl.Series:
    """A column of a file as its canonical type; refuses another type, and values that the type cannot hold."""
    column, dtype, file = COLUMNS[name], frame.schema[name], files[frame[FILE].item(0)]
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    text = dtype in (pl.String, pl.Categorical, pl.Enum)
    fits, right = {
        "whole": (dtype.is_integer(), "whole numbers"),
        "number": (dtype.is_numeric(), "numbers"),
        "text": (text or dtype.is_integer(), "text"),
        "whole list": (inner is not None and (inner.is_integer() or inner == pl.Null), "lists of whole numbers"),
    }[column.kind]
    if not fits and dtype != pl.Null:
        raise TraceError(f"{file}: the column {name!r} is {dtype}, but must be {right} ({column.dtype})")
    if inner == pl.UInt64:  # hashes are compared, never counted with, so their bits may be read as signed
        return frame.select(
            pl.col(name).cast(pl.List(inner)).list.eval(pl.element().reinterpret(signed=True))
        ).to_series()
    cast = pl.col(name).cast(column.dtype, strict=False)
    refuse_rows(frame, files, name, pl.col(name).is_not_null() & cast.is_null(), f"within {column.dtype}")
    return frame.select(cast).to_series()


def row_rules(block_size: int | None, hash_scope: HashScope) -> Iterator[Rule]:
    """The rules that look at one row."""
    for name in ("prompt_tokens", "output_tokens"):
        yield name, pl.col(name).is_null() | (pl.col(name) < 1), "a whole number of at least 1"
    yield "max_tokens", pl.col("max_tokens") < pl.col("output_tokens"), "at least the output_tokens of its row"
    yield "turn", pl.col("turn") < 0, "0 or more"
    think, deadline = pl.col("think_time_ms"), pl.col("deadline_ms")
    yield "think_time_ms", ~think.is_finite() | (think < 0), "0 or more milliseconds"
    yield "deadline_ms", ~deadline.is_finite() | (deadline <= 0), "more than 0 milliseconds"
    ids, hashes = pl.col("prompt_token_ids"), pl.col("prefix_hashes")
    yield "prompt_token_ids", ids.list.len() != pl.col("prompt_tokens"), "as many ids as its prompt_tokens says"
    yield "prompt_token_ids", ids.list.eval(pl.element().is_null() | (pl.element() < 0)).list.any(), "ids of 0 or more"
    yield "prefix_hashes", hashes.list.eval(pl.element().is_null()).list.any(), "without nulls"
    if block_size is not None:
        started = (pl.col("prompt_tokens") + block_size - 1) // block_size
        right = f"at most one hash for each started block of {block_size} prompt tokens"
        yield "prefix_hashes", hashes.list.len() > started, right
    if hash_scope == "session":
        right = "given where there are prefix_hashes, because their scope is the session"
        yield "session", pl.col("session").is_null() & (hashes.list.len() > 0), right


def refuse_bad_rows(frame: pl.DataFrame, files: Sequence[Path], block_size: int | None, hash_scope: HashScope) -> None:
    """Raise `TraceError` for the first row that cannot be replayed. `frame` has canonical columns, `FILE` and `ROW`."""
    rules = list(row_rules(block_size, hash_scope))
    broken = frame.select(bad.fill_null(False).any().alias(str(n)) for n, (_, bad, _) in enumerate(rules)).row(0)
    for found, (column, bad, right) in zip(broken, rules, strict=True):
        if found:
            refuse_rows(frame, files, column, bad, right)
    identity = pl.col("request_id")
    refuse_rows(frame, files, "request_id", identity.is_null(), "given in every row, or in none")
    if frame["request_id"].is_duplicated().any():
        refuse_rows(frame, files, "request_id", ~identity.is_first_distinct(), "unique: an earlier row has the same")
    refuse_bad_sessions(frame, files)


def refuse_bad_sessions(frame: pl.DataFrame, files: Sequence[Path]) -> None:
    """Refuse turns that cannot be replayed one after the other: twice the same, some without, or against time."""
    turns = (
        frame.lazy().filter(pl.col("session").is_not_null()).select(FILE, ROW, "session", "turn", "arrival").collect()
    )
    session, turn = pl.col("session"), pl.col("turn")
    mixed = turn.is_null() & turn.is_not_null().any().over("session")
    refuse_rows(turns, files, "turn", mixed, "given in every row of its session, or in none")
    ordered = turns.filter(turn.is_not_null()).sort("session", "turn", maintain_order=True)
    follows = session == session.shift()
    refuse_rows(ordered, files, "turn", follows & (turn == turn.shift()), "there once in its session")
    early = follows & (pl.col("arrival") < pl.col("arrival").shift())
    refuse_rows(ordered, files, "turn", early, "in order of arrival: an earlier turn of its session arrives later")

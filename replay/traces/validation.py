"""The rules that a trace must keep to be replayable: each is a column, what is bad in it, and what would be right.

It knows the canonical columns only; how arrivals are given is `arrival`'s affair. The first fault is refused, naming
file, row and column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import polars as pl

from replay.errors import TraceError
from replay.traces.faults import FILE, ROW, Rule, fault, refuse_broken, refuse_rows
from replay.traces.table import COLUMNS, HashScope, HashTail
from replay.traces.turns import turns

EARLY = "in order of arrival: an earlier turn of its session arrives later"

MOST = 2**31 - 1  # tokens of a prompt or an answer, so that sums over any trace are exact


def column_values(name: str, dtype: pl.DataType, file: Path) -> tuple[pl.Expr, list[Rule]]:
    """A column of a file as its canonical type, and what that type cannot hold; refuses a column of another kind."""
    column = COLUMNS[name]
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
        return pl.col(name).cast(pl.List(inner)).list.eval(pl.element().reinterpret(signed=True)), []
    cast = pl.col(name).cast(column.dtype, strict=False)
    if dtype == column.dtype:
        return cast, []
    return cast, [Rule(name, pl.col(name).is_not_null() & cast.is_null(), f"within {column.dtype}")]


def row_rules(block_size: int | None, hash_scope: HashScope, hash_tail: HashTail) -> Iterator[Rule]:
    """The rules that look at one row."""
    for name in ("prompt_tokens", "output_tokens"):
        yield Rule(name, pl.col(name).is_null() | (pl.col(name) < 1), "a whole number of at least 1")
        yield Rule(name, pl.col(name) > MOST, f"at most {MOST:,} tokens")
    declared = pl.col("max_tokens") < pl.col("output_tokens")
    yield Rule("max_tokens", declared, "at least the output_tokens of its row")
    yield Rule("turn", pl.col("turn") < 0, "0 or more")
    think, deadline = pl.col("think_time_ms"), pl.col("deadline_ms")
    yield Rule("think_time_ms", ~think.is_finite() | (think < 0), "0 or more milliseconds")
    yield Rule("deadline_ms", ~deadline.is_finite() | (deadline <= 0), "more than 0 milliseconds")
    ids, hashes = pl.col("prompt_token_ids"), pl.col("prefix_hashes")
    mismatch = ids.list.len() != pl.col("prompt_tokens")
    yield Rule("prompt_token_ids", mismatch, "as many ids as its prompt_tokens says")
    no_id = ids.list.eval(pl.element().is_null() | (pl.element() < 0)).list.any()
    yield Rule("prompt_token_ids", no_id, "ids of 0 or more")
    yield Rule("prefix_hashes", hashes.list.eval(pl.element().is_null()).list.any(), "without nulls")
    if block_size is not None:
        most = blocks(pl.col("prompt_tokens"), block_size, hash_tail)
        kind = "started" if hash_tail == "ceil" else "whole"
        right = f"at most one hash for each {kind} block of {block_size} prompt tokens"
        yield Rule("prefix_hashes", hashes.list.len() > most, right)
    if hash_scope == "session":
        right = "given where there are prefix_hashes, because their scope is the session"
        yield Rule("session", pl.col("session").is_null() & (hashes.list.len() > 0), right)


def blocks(tokens: pl.Expr, block_size: int, hash_tail: HashTail) -> pl.Expr:
    """How many blocks of so many tokens may have a hash: those that are started, or those that are whole."""
    return (tokens + block_size - 1) // block_size if hash_tail == "ceil" else tokens // block_size


def refuse_bad_rows(rows: pl.LazyFrame, files: Sequence[Path], rules: Iterable[Rule]) -> None:
    """Raise `TraceError` for the first row that cannot be replayed. `rows` has canonical columns, `FILE` and `ROW`."""
    refuse_broken(rows, files, list(rules))
    refuse_bad_sessions(rows, files)


def refuse_bad_ids(rows: pl.LazyFrame, files: Sequence[Path]) -> None:
    """Refuse a request id that is missing, or that two rows have. 64 bits of each id are sorted, not the ids."""
    identity = pl.col("request_id")
    refuse_rows(rows, files, "request_id", identity.is_null(), "given in every row, or in none")
    hashes = rows.select(identity.hash().sort()).collect(engine="streaming").to_series()
    twice = hashes.filter(hashes == hashes.shift())
    if twice.len():
        alike = rows.filter(identity.hash().is_in(twice.unique().implode())).collect()
        refuse_rows(alike, files, "request_id", ~identity.is_first_distinct(), "unique: an earlier row has the same")


def refuse_bad_sessions(rows: pl.LazyFrame, files: Sequence[Path]) -> None:
    """Refuse turns that cannot be replayed one after the other: twice the same, some without, or against time."""
    turn, arrival = pl.col("turn"), pl.col("arrival")
    follows = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in ("session", "again"))
    mixed = turn.is_null() & turn.is_not_null().any().over("session", "again")
    rules = [
        Rule("turn", mixed, "given in every row of its session, or in none"),
        Rule("turn", follows & (turn == turn.shift()), "there once in its session"),
        Rule("turn", follows & turn.is_not_null() & (arrival < arrival.shift()), EARLY),
    ]
    found: list[list[tuple[int, int, int, int]]] = [[] for _ in rules]
    again = pl.col("session").hash(seed=1).alias("again")  # two names may share 64 bits, but hardly 128
    for part in turns(rows, FILE, ROW, again):
        nulls = part["turn"].null_count() > 0
        for rule, faults in list(zip(rules, found, strict=True))[not nulls :]:
            bad = part.filter(rule.bad).select(FILE, ROW, "turn")
            faults += [(*first, bad.height) for first in bad.bottom_k(1, by=[FILE, ROW]).iter_rows()]
    for rule, faults in zip(rules, found, strict=True):
        if faults:
            file, row, value, _ = min(faults, key=lambda each: each[:2])
            raise fault(files, rule, file, row, value, sum(count for *_, count in faults) - 1)

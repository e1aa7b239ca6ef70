"""The one sentence by which a row of a trace is refused: which file, which row, which column, what is wrong.

It knows no rule of its own: the caller says what is bad and what would be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from replay.errors import TraceError
from replay.traces.wording import counted

FILE, ROW = "__file", "__row"  # while a trace is read: which of its files, and the row there, from 0


@dataclass(frozen=True, slots=True)
class Rule:
    """What a column may not hold: the rows that are `bad`, and what `right` would be, to complete "must be ..."."""

    column: str
    bad: pl.Expr
    right: str


def refuse_rows(
    rows: pl.DataFrame | pl.LazyFrame,
    files: Sequence[Path],
    column: str,
    bad: pl.Expr,
    right: str,
    *,
    shown: str | None = None,
) -> None:
    """Raise `TraceError` for the first row, in order of file and row, for which `bad` holds; else do nothing.

    `rows` has the columns `FILE` and `ROW`; `right` completes "must be ..."; `shown` is the column in the rows that
    holds the value to quote, where its name there is not `column`.
    """
    refuse_broken(rows, files, [Rule(column, bad, right)], shown=shown)


def refuse_broken(
    rows: pl.DataFrame | pl.LazyFrame, files: Sequence[Path], rules: Sequence[Rule], *, shown: str | None = None
) -> None:
    """Raise `TraceError` for the first of `rules` that a row breaks; all are looked at in one pass over the rows."""
    rows = rows.lazy()
    broken = rows.select(rule.bad.fill_null(False).any().alias(str(n)) for n, rule in enumerate(rules))
    for rule, found in zip(rules, broken.collect(engine="streaming").row(0), strict=True) if rules else ():
        if found:
            value = shown or rule.column
            faults = rows.filter(rule.bad.fill_null(False)).select(FILE, ROW, value)
            file, row, seen = faults.sort(FILE, ROW).head(1).collect(engine="streaming").row(0)
            more = faults.select(pl.len()).collect(engine="streaming").item() - 1
            raise fault(files, rule, file, row, seen, more)


def fault(files: Sequence[Path], rule: Rule, file: int, row: int, value: object, more: int) -> TraceError:
    """The sentence on the first row that breaks a rule, with the value that it has, and on how many more there are."""
    place = place_text(files[file], row, rule.column)
    like = f" ({counted(more, 'more row')} like it)" if more else ""
    return TraceError(f"{place}: {quoted(value)}, but must be {rule.right}{like}")


def place_text(file: Path, row: int, column: str | None = None) -> str:
    """Where something stands: file, row, and column if it is one."""
    return f"{file}, row {row} (counted from 0)" + (f", column {column!r}" if column else "")


def quoted(value: object) -> str:
    """A value as a sentence quotes it, short."""
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

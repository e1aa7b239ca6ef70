"""The one sentence by which a row of a trace is refused: which file, which row, which column, what is wrong.

It knows no rule of its own: the caller says what is bad and what would be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from replay.errors import TraceError
from replay.traces.wording import counted

FILE, ROW = "__file", "__row"  # while a trace is read: which of its files, and the row there, from 0


def refuse_rows(
    frame: pl.DataFrame, files: Sequence[Path], column: str, bad: pl.Expr, right: str, *, shown: str | None = None
) -> None:
    """Raise `TraceError` for the first row, in order of file and row, for which `bad` holds; else do nothing.

    `frame` has the columns `FILE` and `ROW`; `right` completes "must be ..."; `shown` is the column in the frame that
    holds the value to quote, where its name there is not `column`.
    """
    faults = frame.lazy().filter(bad.fill_null(False)).sort(FILE, ROW).collect()
    if faults.is_empty():
        return
    first = faults.row(0, named=True)
    more = f" ({counted(faults.height - 1, 'more row')} like it)" if faults.height > 1 else ""
    value = first[shown or column]
    quoted = "null" if value is None else repr(value)
    if len(quoted) > 60:
        quoted = quoted[:57] + "..."
    place = f"{files[first[FILE]]}, row {first[ROW]} (counted from 0), column {column!r}"
    raise TraceError(f"{place}: {quoted}, but must be {right}{more}")

"""What is declared for some names of a column: that they are there, and what each is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from replay.errors import TraceError
from replay.registry import nearest
from replay.traces.table import Trace


def looked_up(names: pl.Expr, table: Mapping[Any, object], dtype: pl.DataType) -> pl.Expr:
    """What the table says of each name, null where it says nothing.

    For the whole of a column, Polars' own `replace_strict` would hold all rows in memory.
    """
    old, new = list(table), list(table.values())

    def change(piece: pl.Series) -> pl.Series:
        return piece.replace_strict(old, new, default=None, return_dtype=dtype)

    return names.map_batches(change, return_dtype=dtype, is_elementwise=True)


def refuse_absent(trace: Trace, column: str, names: Sequence[str], place: str) -> None:
    """Refuse a name that no request has in the column."""
    values = trace.rows.select(pl.col(column).drop_nulls().unique().sort()).collect(engine="streaming")
    known = values[column].to_list()
    for name in names:
        if name not in known:
            raise TraceError(
                f"{trace.path}: {place} names {name!r}, of whom there is no request; {nearest(name, known)}"
            )

"""Values by name, a piece of the column at a time; it knows no trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl


def looked_up(names: pl.Expr, table: Mapping[Any, object], dtype: pl.DataType) -> pl.Expr:
    """What the table says of each name, null where it says nothing.

    For the whole of a column, Polars' own `replace_strict` would hold all rows in memory.
    """
    old, new = list(table), list(table.values())

    def change(piece: pl.Series) -> pl.Series:
        return piece.replace_strict(old, new, default=None, return_dtype=dtype)

    return names.map_batches(change, return_dtype=dtype, is_elementwise=True)

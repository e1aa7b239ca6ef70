"""Bins of equal width on a log axis for whole numbers, the same whether Polars counts or numpy draws.

A bin holds the whole numbers `n` with `low <= n + 0.5 < high`: half a number away from any edge that is whole itself,
so that no rounding of logarithms moves one of up to ten digits into the bin beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray


def bin_of(numbers: pl.Expr, per_decade: int) -> pl.Expr:
    """The bin of each number from 1 on, counted from 0 at 1."""
    return ((numbers + 0.5).log10() * per_decade).floor().cast(pl.Int64)


def edges_of(first: int, last: int, per_decade: int) -> NDArray[Any]:
    """The edges of the bins from `first` to `last`, one more than there are bins: halfway between whole numbers.

    A bin between two edges that are equal holds no whole number.
    """
    lows = 10.0 ** (np.arange(first, last + 2) / per_decade)
    edges: NDArray[Any] = np.ceil(lows - 0.5 - 1e-9) - 0.5
    return edges

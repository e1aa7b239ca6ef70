"""Chance that goes by names: the same name and seed draw the same number, in any order, any file and any version.

So a sample needs no memory, and what was left out before it does not change whom it takes. It knows no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

BASIS, PRIME = 0xCBF29CE484222325, 0x100000001B3  # FNV-1a of 64 bits
ALL = 2**64


def draw(names: pl.Expr, seed: int, purpose: str) -> pl.Expr:
    """A number below 2**64 for each name, uniform over names; draws of another `purpose` or seed are independent."""
    start = int(stirred(np.array([fnv(f"{purpose} {seed}".encode())], np.uint64))[0])
    return names.map_batches(partial(hashes, start=start), return_dtype=pl.UInt64, is_elementwise=True)


def draw_again(numbers: pl.Expr) -> pl.Expr:
    """A number below 2**64 for each of such numbers, uniform over different ones."""
    return numbers.map_batches(
        lambda found: pl.Series(found.name, stirred(found.to_numpy())), return_dtype=pl.UInt64, is_elementwise=True
    )


def drawn(names: pl.Expr, seed: int, purpose: str, weights: Sequence[float]) -> pl.Expr:
    """For each name the place of one of the weights, as likely as that weight is of their sum."""
    bounds = np.cumsum(np.array(weights, np.float64))
    bounds = np.floor(bounds / bounds[-1] * 2.0**53).astype(np.int64)  # as fine as draws are even
    return draw(names, seed, purpose).map_batches(
        lambda found: pl.Series(
            np.searchsorted(bounds[:-1], (found.to_numpy() >> np.uint64(11)).astype(np.int64), "right")
        ),
        return_dtype=pl.Int64,
        is_elementwise=True,
    )


def hashes(names: pl.Series, start: int) -> pl.Series:
    """FNV-1a of the UTF-8 of each name, from `start` on, mixed: a byte of all names at a time."""
    lengths = names.str.len_bytes().fill_null(0).to_numpy().astype(np.int64)
    text = np.frombuffer((names.str.join("").item() or "").encode(), np.uint8).astype(np.uint64)
    starts = np.cumsum(lengths) - lengths
    values = np.full(len(lengths), start, np.uint64)
    longer, place = np.flatnonzero(lengths), 0
    while longer.size:
        values[longer] = (values[longer] ^ text[starts[longer] + place]) * np.uint64(PRIME)
        place += 1
        longer = longer[lengths[longer] > place]
    return pl.Series(names.name, stirred(values))


def fnv(text: bytes) -> int:
    """FNV-1a of one text."""
    value = BASIS
    for byte in text:
        value = (value ^ byte) * PRIME % ALL
    return value


def stirred(values: NDArray[Any]) -> NDArray[Any]:
    """The values with their bits mixed (the finalizer of SplitMix64), so that names that are alike draw unlike."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[Any] = values ^ (values >> np.uint64(31))
    return mixed

"""How much of the prompts of a trace a prefix cache would hold already, by the cache's size, and over time.

The cache keeps blocks of prompts and forgets those that were used least recently. It is filled the instant a request
arrives: it knows no engine, no answers, and nothing of what is in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.traces.describing.blocks import block_keys, prompt_blocks
from replay.traces.drawing import draw, draw_again
from replay.traces.table import HashScope

MOST_BLOCKS = 2_000_000


@dataclass(slots=True, frozen=True)
class Reuse:
    """Each block of each prompt, in order: when it is asked for, its tokens, and `needs`, the blocks that a cache must
    hold so that this one is still there; 0 where nobody has had it before.

    Of very many blocks, those of one in `one_in` hashes; all numbers are then estimates. `prompt_tokens` are all of the
    trace, in blocks or not.
    """

    arrival: NDArray[Any]
    tokens: NDArray[Any]
    needs: NDArray[Any]
    one_in: int
    prompt_tokens: int

    @property
    def share(self) -> float:
        """Of all prompt tokens, those that an endless cache would have."""
        return float(self.tokens[self.needs > 0].sum()) * self.one_in / self.prompt_tokens

    def curve(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Cache sizes in blocks at which more is found, rising, and the share of all prompt tokens found with each."""
        found = self.needs > 0
        sizes, places = np.unique(self.needs[found], return_inverse=True)
        tokens = np.bincount(places, weights=self.tokens[found], minlength=len(sizes))
        return sizes, np.cumsum(tokens) * self.one_in / self.prompt_tokens

    def size_for(self, part: float) -> int:
        """The fewest blocks of cache with which so much is found of what an endless one has; 0 where that is none."""
        sizes, shares = self.curve()
        enough = sizes[shares >= part * self.share * (1 - 1e-12)]
        return int(enough[0]) if len(enough) else 0


def reuse(rows: pl.LazyFrame, block_size: int, scope: HashScope, most: int = MOST_BLOCKS) -> Reuse | None:
    """What becomes of each block of the prompts. None where no row has hashes.

    Where there are more than `most` blocks, hashes are drawn, all blocks of each, and the cache is made smaller in the
    same proportion (Waldspurger et al., SHARDS, FAST 2015).
    """
    count, prompt_tokens = (
        rows.select(pl.col("prefix_hashes").list.len().sum(), pl.col("prompt_tokens").sum())
        .collect(engine="streaming")
        .row(0)
    )
    if not count:
        return None
    one_in = ceil(count / most)
    keys = block_keys(scope)
    blocks = prompt_blocks(rows.with_columns(drawn=_drawn(scope)), block_size, "arrival", "drawn")
    if one_in > 1:
        blocks = blocks.filter(draw_again(pl.col("drawn") ^ pl.col("hash").reinterpret(signed=False)) % one_in == 0)
    drawn = blocks.select("request", "arrival", *keys, "place", "tokens").collect(engine="streaming")
    # a prompt's last block is used first, so that of two blocks the one nearer to the start is forgotten later
    drawn = drawn.sort("request", pl.col("place"), descending=[False, True]).with_row_index("at")
    drawn = drawn.with_columns(
        before=pl.col("at").cast(pl.Int64).shift(1).over(keys), begin=pl.col("at").min().over("request")
    )
    needs = _needs(drawn["before"].fill_null(-1).to_numpy(), drawn["begin"].to_numpy().astype(np.int64))
    return Reuse(drawn["arrival"].to_numpy(), drawn["tokens"].to_numpy(), needs * one_in, one_in, prompt_tokens)


def _drawn(scope: HashScope) -> pl.Expr:
    """What is added to the draw of a hash: hashes of a session are drawn in each apart."""
    return draw(pl.col("session"), 0, "reuse") if scope == "session" else pl.lit(0, pl.UInt64)


def _needs(before: NDArray[Any], begin: NDArray[Any]) -> NDArray[Any]:
    """The blocks that a cache must hold so that each is still there as its request begins, at the place `begin`.

    `before` is where it was used last, -1 if nowhere. Between the two, a use is of yet another block unless that was
    used in between already, and so last after `before`; if equal hashes are equal prefixes, no later use is such.
    """
    needs = begin - before - larger_before(before)
    return np.where(before < 0, 0, np.maximum(needs, 1))


def larger_before(values: NDArray[Any]) -> NDArray[Any]:
    """For each value, how many that stand before it are larger. Those below 0 are not counted, and count none.

    A digit of the ranks at a time, the highest first: among those that are alike so far, a 1 is larger than the zeros
    that come after it.
    """
    known = np.flatnonzero(values >= 0)
    counts = np.zeros(len(values), dtype=np.int64)
    if not len(known):
        return counts
    rank = values[known].astype(np.int64)
    found = np.zeros(len(known), dtype=np.int64)
    order = np.arange(len(known))  # by the digits so far, then by place
    for digit in reversed(range(int(rank.max()).bit_length())):
        ones = rank[order] >> digit & 1
        group = rank[order] >> (digit + 1)
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        sizes = np.diff(starts, append=len(order))
        before = np.cumsum(ones) - ones  # ones that stand before, in all groups
        within = before - np.repeat(before[starts], sizes)
        found[order] += np.where(ones == 0, within, 0)
        zeros_within = np.arange(len(order)) - np.repeat(starts, sizes) - within
        zeros_of = sizes - np.add.reduceat(ones, starts)
        moved = np.empty_like(order)
        moved[np.repeat(starts, sizes) + np.where(ones == 0, zeros_within, np.repeat(zeros_of, sizes) + within)] = order
        order = moved
    counts[known] = found
    return counts

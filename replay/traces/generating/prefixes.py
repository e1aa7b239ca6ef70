"""Shared beginnings of prompts, such as system prompts: a tree of them, as the hashes of their blocks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

import polars as pl
from pydantic import Field

from replay.registry import nearest
from replay.traces.generating.sections import MOST_COPIES, Section
from replay.traces.generating.zipf import Share, cumulated, picker

Hashes = list[int]


class Prefix(Section):
    """A shared beginning of prompts: whole blocks of `block_size` tokens, after those of its `parent` if it has one.

    With `copies`, there are so many different ones of that length, for each copy of the parent: each request that
    begins with it has one of them, all as often or as a `share` among them says.
    """

    name: str
    tokens: int = Field(ge=1)
    parent: str | None = None
    copies: int = Field(default=1, ge=1, le=MOST_COPIES)
    share: Share | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """The copies of a prefix, from the root of the tree on, and how often each is had; None: all as often."""

    copies: list[Hashes]
    weights: list[float] | None = None

    @property
    def blocks(self) -> pl.Expr:
        """Of the copy whose place is in the column `copy`; 0 without one."""
        return self.hashes.list.len().cast(pl.Int64).fill_null(0)

    @property
    def hashes(self) -> pl.Expr:
        """Of the copy whose place is in the column `copy`; null without one, and where there is nothing to share."""
        kind = pl.List(pl.Int64)
        copies = [copy or None for copy in self.copies]
        if not any(copies):
            return pl.lit(None, kind)
        return pl.lit(pl.Series(copies, dtype=kind)).gather(pl.col("copy"))

    def drawn_from(self, stream: random.Random) -> Callable[[], int]:
        """A function that draws the place of one of the copies."""
        if len(self.copies) == 1:
            return lambda: 0
        if self.weights is None:
            return lambda: stream.randrange(len(self.copies))
        return picker(cumulated(self.weights), stream)


NO_PREFIX = Shared([[]])


def joined(several: Sequence[Shared]) -> Shared:
    """The copies of one after those of the other, by place; how often each is had is another's affair."""
    return Shared([copy for shared in several for copy in shared.copies])


def check_tree(prefixes: Sequence[Prefix], block_size: int) -> None:
    """Raises ValueError for a prefix that cannot be made."""
    parents = {prefix.name: prefix.parent for prefix in prefixes}
    if len(parents) < len(prefixes):
        raise ValueError("two prefixes have the same name")
    for prefix in prefixes:
        place = f"prefix {prefix.name!r}"
        if prefix.tokens % block_size:
            raise ValueError(f"{place}: {prefix.tokens} tokens are not whole blocks of {block_size}")
        if prefix.share is not None and prefix.copies == 1:
            raise ValueError(f"{place}: share needs copies to be shared among")
        if prefix.parent is not None and prefix.parent not in parents:
            raise ValueError(f"{place}: there is no prefix {prefix.parent!r}: {nearest(prefix.parent, parents)}")
        ancestor, steps = prefix.parent, 0
        while ancestor is not None and steps < len(prefixes):
            ancestor, steps = parents.get(ancestor), steps + 1
        if ancestor is not None:
            raise ValueError(f"{place}: is its own ancestor")


def prefix_hashes(prefixes: Sequence[Prefix], block_size: int) -> dict[str, Shared]:
    """Every prefix by name. Hashes are counted on from block to block of a prefix, from copy to copy and from prefix to
    prefix, so that no two blocks share one."""
    by_name = {prefix.name: prefix for prefix in prefixes}
    counter = count()

    def many(prefix: Prefix) -> int:
        return prefix.copies * (many(by_name[prefix.parent]) if prefix.parent else 1)

    own = {
        prefix.name: [[next(counter) for _ in range(prefix.tokens // block_size)] for _ in range(many(prefix))]
        for prefix in prefixes
    }

    def whole(prefix: Prefix) -> Shared:
        above = whole(by_name[prefix.parent]) if prefix.parent else NO_PREFIX
        copies = [above.copies[place // prefix.copies] + blocks for place, blocks in enumerate(own[prefix.name])]
        if above.weights is None and prefix.share is None:
            return Shared(copies)
        here = (prefix.share or Share(zipf=0.0)).weights(prefix.copies)
        over = above.weights or [1 / len(above.copies)] * len(above.copies)
        return Shared(copies, [weight * part for weight in over for part in here])

    return {prefix.name: whole(prefix) for prefix in prefixes}


def with_prefix(table: pl.DataFrame, prefix: Shared, block_size: int) -> pl.DataFrame:
    """The rows with their copy of the prefix before the prompts that were drawn."""
    prompt = prefix.blocks * block_size + pl.col("prompt_tokens")
    return table.with_columns(prefix.hashes.alias("prefix_hashes"), prompt_tokens=prompt)

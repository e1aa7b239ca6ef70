"""Shared beginnings of prompts, as a few prefixes of so many tokens, each in so many copies.

It knows how much of each prompt had been seen before and in which row first; of a tree of prefixes it keeps no
branches, and of copies not which are popular.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from replay.traces.fitting.rows import Rows

MOST_PREFIXES = 20
MOST_COPIES = 8  # times as many as requests: then hardly one comes again
FEWEST_HITS = 30  # requests to a prefix, at least


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """A beginning of `tokens` tokens, of which there are so many different ones."""

    name: str
    tokens: int
    copies: int


def fit_prefixes(rows: Rows, *, grown: bool) -> tuple[pl.Series, list[SharedPrefix]]:
    """Of each row which prefix it begins with (a place in the list, or null), and the prefixes.

    Requests that share something are binned by how much; the first request with a prefix has it, too, though it shared
    nothing. In sessions that have `grown`, what a later turn has in common with earlier ones is no prefix.
    """
    frame, size = rows.frame, rows.block_size
    none = pl.Series("prefix", [None], dtype=pl.Int64).extend_constant(None, frame.height - 1)
    if size is None:
        return none, []
    hit = (frame["seen"] >= size) & (frame["first"] if grown else True)
    seen = frame.filter(hit)["seen"].to_numpy()
    if len(seen) < FEWEST_HITS:
        return none, []
    bins = min(MOST_PREFIXES, len(seen) // FEWEST_HITS)
    edges = np.unique(np.quantile(seen, np.linspace(0, 1, bins + 1)[1:-1], method="higher"))
    place = pl.Series("place", np.searchsorted(edges, frame["seen"].to_numpy(), "right"), dtype=pl.Int64)
    labelled = frame.select("row", "seen", "source").with_columns(place, hit.alias("hit"))
    firsts = labelled.filter("hit").group_by(pl.col("source").alias("row")).agg(pl.col("place").max().alias("begun"))
    labelled = labelled.join(firsts, on="row", how="left", maintain_order="left").with_columns(
        prefix=pl.when("hit").then("place").otherwise("begun")
    )
    held = (
        labelled.filter(pl.col("prefix").is_not_null())
        .group_by("prefix")
        .agg(pl.len(), pl.col("hit").sum().alias("hits"), pl.col("seen").filter("hit").mean().alias("tokens"))
        .sort("prefix")
    )
    found = [
        SharedPrefix(f"prefix-{number + 1}", max(1, round(tokens / size)) * size, copies_for(members, members - hits))
        for number, (_, members, hits, tokens) in enumerate(held.iter_rows())
    ]
    numbered = held.select("prefix", pl.int_range(pl.len()).alias("number"))
    return labelled.join(numbered, on="prefix", how="left", maintain_order="left")["number"], found


def copies_for(members: int, distinct: int) -> int:
    """Of how many copies one must draw evenly, `members` times, to meet `distinct` of them.

    Of c copies one meets c (1 - (1 - 1/c)^members).
    """
    copies = max(1, distinct)
    while 1 < copies < MOST_COPIES * members and -copies * np.expm1(members * np.log1p(-1 / copies)) < distinct:
        copies += max(1, copies // 50)
    return min(copies, MOST_COPIES * members)

"""The rows that a fit looks at: all of a trace that is not large, else stretches from all over it; lengths, users,
sessions, and of each prompt how much of it had been seen before.

It leaves text behind: who is who is a number from here on, in order of how much they ask for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from replay.traces.describing.blocks import block_keys
from replay.traces.fitting.arrivals import counts_in
from replay.traces.fitting.distances import Numbers, Wholes
from replay.traces.table import HashScope

LARGE = 1_000_000  # rows; of more, every so many stretches of `STRETCH` rows
STRETCH = 10_000
COLUMNS = (
    "arrival", "prompt_tokens", "output_tokens", "user", "session", "turn", "think_time_ms",
    "priority", "deadline_ms", "slo", "max_tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rows:
    """`frame` has the trace's columns, without names: `who` is a user's rank by requests from 0 (null: nobody's),
    `sid` a session's number; `first` says whether a row begins a session or has none.

    `rows` and `span` (nanoseconds) are of the whole trace. Of a large one only every so many stretches are here, and
    `whole` is all of it, to count in.
    """

    frame: pl.DataFrame
    rows: int
    span: int
    block_size: int | None
    every: int = 1
    whole: pl.LazyFrame | None = None

    def counts(self, starts: Wholes, edges: Wholes) -> Numbers:
        """How many of the whole trace's starts lie in each window, if `starts` are those that are here."""
        if self.whole is None:
            return counts_in(starts, edges).astype(np.float64)
        width = int(edges[1] - edges[0])
        found = (
            self.whole.group_by(pl.min_horizontal(pl.col("arrival") // width, len(edges) - 2).alias("window"))
            .len()
            .collect(engine="streaming")
        )
        counts = np.zeros(len(edges) - 1)
        counts[found["window"].to_numpy()] = found["len"].to_numpy()
        return counts * (len(starts) / self.frame.height)


def fit_rows(lazy: pl.LazyFrame, block_size: int | None, scope: HashScope, *, large: int = LARGE) -> Rows:
    """What a fit needs of the rows of a trace."""
    rows, span = lazy.select(pl.len(), pl.col("arrival").max()).collect(engine="streaming").row(0)
    every = -(-rows // large)
    wanted = [*COLUMNS, "prefix_hashes"] if block_size is not None else list(COLUMNS)
    picked = lazy.select(wanted).with_row_index("row")
    if every > 1:
        picked = picked.filter(pl.col("row") // STRETCH % every == 0)
    frame = picked.collect(engine="streaming")
    blocks = prefix_blocks(frame, scope) if block_size is not None else None
    frame = frame.with_columns(
        seen=_seen(frame, blocks, block_size),
        source=_source(frame, blocks, scope),
        stretch=pl.col("row") // STRETCH if every > 1 else 0,
    )
    return Rows(_nameless(frame), rows, int(span), block_size, every, lazy if every > 1 else None)


def _nameless(frame: pl.DataFrame) -> pl.DataFrame:
    """Users and sessions by number: users by how much they ask for, sessions as they come."""
    ranks = (
        frame.filter(pl.col("user").is_not_null())
        .group_by("user", maintain_order=True)
        .len()
        .sort("len", descending=True, maintain_order=True)
        .with_row_index("who")
        .select("user", "who")
    )
    return (
        frame.join(ranks, on="user", how="left", maintain_order="left")
        .with_columns(
            sid=pl.when(pl.col("session").is_not_null()).then(pl.col("session").rank("dense")),
            first=pl.col("session").is_null() | pl.col("session").is_first_distinct(),
        )
        .drop("user", "session", "prefix_hashes", strict=False)
    )


def prefix_blocks(frame: pl.DataFrame, scope: HashScope) -> pl.DataFrame:
    """Row, block's place, hash, and whether an earlier row had that block: a line for each block of each prompt.

    A hash may occur twice in one prompt only where prompts repeat themselves, which hashes of prefixes cannot.
    """
    keys = block_keys(scope)
    return (
        frame.select("row", "session", pl.col("prefix_hashes").alias("hash"))
        .filter(pl.col("hash").list.len() > 0)
        .explode("hash")
        .with_columns(seen=~pl.struct(keys).is_first_distinct())
    )


def _seen(frame: pl.DataFrame, blocks: pl.DataFrame | None, size: int | None) -> pl.Series:
    """Tokens of each row's prompt in blocks that an earlier row had."""
    if blocks is None:
        return pl.Series([0], dtype=pl.Int64).extend_constant(0, frame.height - 1)
    found = blocks.group_by("row").agg(blocks=pl.col("seen").sum())
    joined = frame.select("row", "prompt_tokens").join(found, on="row", how="left", maintain_order="left")
    seen = joined.select(pl.min_horizontal(pl.col("blocks").fill_null(0).cast(pl.Int64) * size, "prompt_tokens"))
    return seen.to_series()


def _source(frame: pl.DataFrame, blocks: pl.DataFrame | None, scope: HashScope) -> pl.Series:
    """The row that was first with the longest prefix that each row shares with an earlier one; null for no row."""
    if blocks is None:
        return pl.Series([None], dtype=pl.UInt32).extend_constant(None, frame.height - 1)
    keys = block_keys(scope)
    owners = blocks.filter(~pl.col("seen")).select(*keys, pl.col("row").alias("source"))
    last = blocks.filter("seen").group_by("row").agg(pl.col("session", "hash").last())
    of_row = last.join(owners, on=keys, how="left").select("row", "source")
    return frame.select("row").join(of_row, on="row", how="left", maintain_order="left")["source"]

"""The blocks of a trace's prompts, a row each: what a cache is asked for, and by which keys two are the same."""

from __future__ import annotations

import polars as pl

from replay.traces.table import HashScope


def block_keys(scope: HashScope) -> list[str]:
    """The columns in which two blocks must be equal to be the same, with all that comes before them."""
    return ["session", "hash"] if scope == "session" else ["hash"]


def prompt_blocks(rows: pl.LazyFrame, block_size: int, *columns: str) -> pl.LazyFrame:
    """Each block that has a hash, in order of `request` (those with hashes, from 0) and of `place` in its prompt, with
    its `tokens`, which are fewer where the prompt ends in it, and more `columns` of its request."""
    hashes = pl.col("prefix_hashes")
    return (
        rows.filter(hashes.list.len() > 0)
        .with_row_index("request")
        .select(
            "request",
            "prompt_tokens",
            "session",
            *columns,
            hash=hashes,
            place=pl.int_ranges(hashes.list.len(), dtype=pl.Int64),
        )
        .explode("hash", "place")
        .with_columns(tokens=pl.min_horizontal(block_size, pl.col("prompt_tokens") - pl.col("place") * block_size))
    )

"""Mooncake traces (Qin et al., FAST 2025) as JSON Lines: times in milliseconds, lengths, hashes of 512-token blocks.

Hashes are global, and the last, partial block of a prompt has one. Many rows share an instant, because the arrivals
were recorded in ticks; exact duplicates are requests of their own.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from replay.traces.canonical import Source
from replay.traces.faults import FILE
from replay.traces.importers import importers
from replay.traces.json_lines import read_json_lines
from replay.traces.wording import counted

BLOCK = 512
NAMES = {
    "timestamp": "arrival_ms",
    "input_length": "prompt_tokens",
    "output_length": "output_tokens",
    "hash_ids": "prefix_hashes",
}
FIELDS = {
    "timestamp": pl.Float64(),
    "input_length": pl.Int64(),
    "output_length": pl.Int64(),
    "hash_ids": pl.List(pl.Int64()),
}


@importers.register("mooncake")
def mooncake(file: Path) -> Source:
    """Mooncake traces (JSON Lines, times in ms, hashes of 512-token blocks)"""
    frame = read_json_lines(file, FIELDS).drop(FILE).rename(NAMES)
    started = (pl.col("prompt_tokens") + BLOCK - 1) // BLOCK
    surplus = frame.filter(pl.col("prefix_hashes").list.len() > started).height
    notes = (
        [f"{counted(surplus, 'row')} with more hashes than blocks: those beyond the prompt are left out"]
        if surplus
        else []
    )
    return Source(
        file,
        frame.with_columns(pl.col("prefix_hashes").list.head(started)),
        block_size=BLOCK,
        notes=notes,
    )

"""Prefix hashes as other people's files have them; it knows no format, only block sizes and where prompts end."""

from __future__ import annotations

import polars as pl

from replay.traces.source import Source
from replay.traces.validation import blocks
from replay.traces.wording import counted


def leave_out_surplus(source: Source) -> None:
    """Leave out hashes of blocks that lie beyond the prompt's end, and note in how many rows there were some."""
    schema = source.rows.collect_schema()
    counts, lists = schema.get("prompt_tokens"), schema.get("prefix_hashes")
    if source.block_size is None or counts is None or not counts.is_integer() or not isinstance(lists, pl.List):
        return  # columns of another type are refused, by name, when all of them are looked at
    hashes, most = pl.col("prefix_hashes"), blocks(pl.col("prompt_tokens"), source.block_size, source.hash_tail)
    count = source.rows.select((hashes.list.len() > most).sum()).collect(engine="streaming").item()
    if count:
        source.notes.append(
            f"{counted(count, 'row')} with more hashes than blocks: those beyond the prompt are left out"
        )
        source.rows = source.rows.with_columns(hashes.list.head(most))

"""Prefix hashes as other people's files have them; it knows no format, only block sizes and where prompts end."""

from __future__ import annotations

import polars as pl

from replay.traces.source import Source
from replay.traces.validation import blocks
from replay.traces.wording import counted


def leave_out_surplus(source: Source) -> None:
    """Leave out hashes of blocks that lie beyond the prompt's end, and note in how many rows there were some."""
    if source.block_size is None or "prefix_hashes" not in source.rows.collect_schema():
        return
    hashes, most = pl.col("prefix_hashes"), blocks(pl.col("prompt_tokens"), source.block_size, source.hash_tail)
    count = source.rows.select((hashes.list.len() > most).sum()).collect(engine="streaming").item()
    if count:
        source.notes.append(
            f"{counted(count, 'row')} with more hashes than blocks: those beyond the prompt are left out"
        )
        source.rows = source.rows.with_columns(hashes.list.head(most))

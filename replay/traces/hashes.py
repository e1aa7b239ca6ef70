"""Prefix hashes as other people's files have them; it knows no format, only block sizes and where prompts end."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from replay.errors import TraceError
from replay.traces.source import Source
from replay.traces.table import HashScope, HashTail
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


def hash_block(sources: Sequence[Source]) -> tuple[int | None, HashScope, HashTail]:
    """Block size, scope and tail of the hashes, of which all files must say the same; no size where there are none."""
    hashed = [source for source in sources if has_hashes(source.rows)]
    if not hashed:
        return None, "global", "ceil"
    first, *others = hashed
    if first.block_size is None:
        raise TraceError(f"{first.path}: there are prefix_hashes, but the file's metadata has no block_size")
    for other in others:
        if (other.block_size, other.hash_scope) != (first.block_size, first.hash_scope):
            raise TraceError(
                f"{first.path} and {other.path}: one hashes blocks of {first.block_size} tokens with "
                f"{first.hash_scope} scope, the other of {other.block_size} with {other.hash_scope} scope"
            )
    tails = {source.hash_tail for source in hashed}
    return first.block_size, first.hash_scope, "floor" if tails == {"floor"} else "ceil"


def has_hashes(rows: pl.LazyFrame) -> bool:
    """Whether any row has prefix hashes."""
    if "prefix_hashes" not in rows.collect_schema():
        return False
    found: bool = rows.select(pl.col("prefix_hashes").is_not_null().any()).collect(engine="streaming").item()
    return found

"""What a JSON Lines file of another program needs of a trace: times in its unit, hash ids from 0 on, and what is lost.

It knows no format; whoever writes one names the fields. Nothing is rounded or renumbered without a remark.
"""

from __future__ import annotations

import polars as pl

from replay.clock import NANOSECONDS
from replay.traces.foreign.delimited import UNITS
from replay.traces.table import Trace
from replay.traces.validation import blocks
from replay.traces.wording import counted

DAY = 24 * 3_600 * NANOSECONDS


def arrivals_in(trace: Trace, unit: str, *, whole: bool) -> tuple[pl.Expr, list[str]]:
    """The arrivals as numbers of `unit`, and remarks: whole numbers if all are, or if asked for, else floats."""
    size, arrival = UNITS[unit], pl.col("arrival")
    found = trace.values(broken=(arrival % size != 0).sum(), last=arrival.max())
    rounded = (arrival + size // 2) // size
    if not found["broken"]:
        return rounded, []
    if whole:
        return rounded, [f"{counted(found['broken'], 'arrival')} rounded to whole {unit}"]
    digits = len(str(size)) - 1
    text = (arrival // size).cast(pl.String) + "." + (arrival % size).cast(pl.String).str.pad_start(digits, "0")
    floats = text.cast(pl.Float64)  # a division by a number is a product in Polars, and the last digit is off
    told = size << 53 - (size - 1).bit_length()  # up to here, floats of this unit tell each nanosecond from the next
    if found["last"] < told:
        return floats, []
    return floats, [f"arrivals beyond {told // DAY} days are rounded: floats of {unit} do not hold each nanosecond"]


def with_hash_ids(trace: Trace, block_size: int, *, fill: bool) -> tuple[pl.LazyFrame, list[str]]:
    """The rows with `prefix_hashes` as ids of 0 and more that mean the same in every session, and remarks.

    Readers of such files make a prompt from its ids, so one with fewer ids than blocks becomes shorter there: with
    `fill`, the blocks that have none get ids that occur once.
    """
    rows, remarks = trace.rows, []
    hashes = pl.col("prefix_hashes")
    found = trace.values(least=hashes.list.min().min(), most=hashes.list.max().max())
    local = trace.hash_scope == "session" and trace.block_size is not None
    if local or (found["least"] or 0) < 0:
        rows, found["most"] = renumbered(rows, local=local)
        why = "are local to a session in the trace" if local else "are negative in the trace"
        remarks.append(f"hash ids are renumbered from 0 in order of first use, because they {why}")
    size = trace.block_size or block_size
    missing = blocks(pl.col("prompt_tokens"), size, "ceil") - hashes.list.len().fill_null(0).cast(pl.Int64)
    short = rows.select((missing > 0).sum()).collect(engine="streaming").item()
    if fill and short:
        start = (-1 if found["most"] is None else found["most"]) + 1 + missing.cum_sum() - missing
        own = pl.int_ranges(start, start + missing)
        rows = rows.with_columns(pl.concat_list(hashes.fill_null([]), own).alias("prefix_hashes"))
        remarks.append(f"{counted(short, 'prompt')} filled with ids that occur once, for blocks of {size} tokens")
    elif short and found["most"] is not None:
        short_prompts = counted(short, "prompt")
        remarks.append(
            f"{short_prompts} with hash ids for fewer blocks than there are: readers that make prompts from the ids "
            "alone shorten them; `-o fill=true` gives every block an id"
        )
    return rows, remarks


def renumbered(rows: pl.LazyFrame, *, local: bool) -> tuple[pl.LazyFrame, int | None]:
    """The rows with hashes counted from 0 in order of first use (in each session apart, if local), and the last."""
    key = ["session", "prefix_hashes"] if local else ["prefix_hashes"]
    rows = rows.with_row_index("__row")
    single = rows.filter(pl.col("prefix_hashes").list.len() > 0).select("__row", *key)
    single = single.explode("prefix_hashes", empty_as_null=False, keep_nulls=False)
    ids = single.unique(key, keep="first", maintain_order=True).with_row_index("__id").collect()
    lists = (
        single.join(ids.lazy().select(*key, pl.col("__id").cast(pl.Int64)), on=key, how="left", maintain_order="left")
        .group_by("__row", maintain_order=True)
        .agg("__id")
    )
    joined = rows.join(lists, on="__row", how="left", maintain_order="left")
    joined = joined.with_columns(pl.coalesce("__id", "prefix_hashes").alias("prefix_hashes")).drop("__row", "__id")
    return joined, ids.height - 1 if ids.height else None


def block_remarks(trace: Trace, usual: int, told: str) -> list[str]:
    """What a reader must be told of the hashes, where they are not of the format's usual blocks; `told` says how."""
    if trace.block_size is None:
        return []
    remarks = []
    if trace.block_size != usual:
        say = told.format(trace.block_size)
        remarks.append(f"the hash ids are of blocks of {trace.block_size} tokens, not {usual}: tell the reader ({say})")
    if trace.hash_tail == "floor":
        remarks.append("a partial last block has no hash id: to read it back, say `-o hash_tail=floor`")
    return remarks

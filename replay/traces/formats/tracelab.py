"""Replay files of TraceLab (SyFI, University of Washington): rounds of coding-agent sessions as CSV, times in ms.

A round's prompt is the first `prefix_len` tokens of the context so far (the prompt and the answer of the round before)
and `input_len` new ones. A session begins at the `arrival_time` of its first round (0 where there is no such column),
and each round comes `tool_wait_after_ms` after the end of the one before: that is its think time, in a closed loop.

The file has no hashes, so they are made: of whole blocks of `block_size` tokens, local to the session. A block has the
hash of the round before where all of it is kept from that round's prompt; every other block has one of its own, that
over the border of what is kept too. What is kept of an answer counts as new, because an answer that is generated in a
replay is not the one of the trace; so does a prefix of which there is nothing before, as that of a first round often
is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from replay.traces.faults import ROW
from replay.traces.foreign.delimited import elapsed, number, scan_csv, text, whole
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.formats import formats
from replay.traces.source import BROKEN, Field, Raw, Source
from replay.traces.wording import counted

SESSIONS = ("session_id", "id")
NAMES = ("round_idx", "prefix_len", "input_len", "output_len", "tool_wait_after_ms")
ARRIVAL = "arrival_time"
ARRIVED = "arrival_ns"
PREFIX, WAIT = "__prefix", "__wait"
MOST = 1 << 24  # tokens
Blocks = NDArray[np.int64]


@formats.register("tracelab")
@dataclass(frozen=True, slots=True)
class TraceLab:
    """Replay files of TraceLab (CSV, ms; sessions in a closed loop, hashes made from prefix lengths)"""

    block_size: int = field(
        default=64, metadata={"help": "tokens of one block of the hashes made", "minimum": 1, "maximum": 10**9}
    )

    def fits(self, look: Glimpse) -> bool:
        return look.includes("csv", all_of=NAMES) and any(name in look.names for name in SESSIONS)

    def read(self, path: Path) -> Source:
        raw = scan_csv(path)
        fields = fields_of(raw)
        source = raw.source(
            fields,
            skips={"no session given": pl.col(fields["session"].column).is_null()},
            block_size=self.block_size,
            hash_scope="session",
            hash_tail="floor",
        )
        try:
            rows = source.rows.collect()
        except (PolarsError, OSError) as fault:
            raise source.explain(fault) from fault
        if rows[BROKEN].any():
            return source  # whoever reads it on says which value it is
        return closed_loops(source, rows, self.block_size)


def fields_of(raw: Raw) -> dict[str, Field]:
    """Where the columns come from; the session has one of two names."""
    session = next((name for name in SESSIONS if name in raw.names), SESSIONS[0])
    return {
        ARRIVED: elapsed(ARRIVAL, "ms", required=False),
        "prompt_tokens": tokens("input_len"),
        "output_tokens": whole("output_len"),
        "session": text(session),
        "turn": whole("round_idx"),
        PREFIX: tokens("prefix_len"),
        WAIT: number("tool_wait_after_ms"),
    }


def tokens(column: str) -> Field:
    """Counts of tokens that lists of blocks can be made for."""
    count = whole(column).value
    return Field(column, pl.when(count.is_between(0, MOST)).then(count), f"a whole number from 0 to {MOST:,}")


def closed_loops(source: Source, rows: pl.DataFrame, block_size: int) -> Source:
    """The source with whole prompts, arrivals of sessions, think times and hashes."""
    timed = ARRIVED in rows.columns
    rows = rows if timed else rows.with_columns(pl.lit(0, pl.Int64).alias(ARRIVED))
    begins = pl.col(ARRIVED).first().over("session")
    prefix = pl.col(PREFIX).fill_null(0)
    rows = rows.sort("session", "turn", ROW).with_columns(
        (pl.col("prompt_tokens") + prefix).alias("prompt_tokens"),
        begins.alias(ARRIVED),
        moved=pl.col(ARRIVED) != begins,
        alone=(pl.col("session") != pl.col("session").shift()).fill_null(True) & (prefix > 0),
        think_time_ms=pl.col(WAIT).shift().over("session"),
    )
    source.notes += remarks(rows, timed=timed)
    lists = [pl.Series(blocks, dtype=pl.Int64) for blocks in hashes(rows, block_size)]
    rows = rows.with_columns(prefix_hashes=pl.Series(lists, dtype=pl.List(pl.Int64)))
    return replace(source, rows=rows.sort(ROW).drop(PREFIX, WAIT, "moved", "alone").lazy())


def hashes(rows: pl.DataFrame, block_size: int) -> Iterator[Blocks]:
    """The blocks of each prompt, which are numbered in their session as they come up; rows are turn after turn."""
    before: tuple[str | None, int] = (None, 0)
    blocks, count = np.arange(0), 0
    for session, prefix, prompt in rows.select("session", pl.col(PREFIX).fill_null(0), "prompt_tokens").iter_rows():
        if session != before[0]:
            before, blocks, count = (session, 0), blocks[:0], 0
        if prompt is None:
            yield blocks[:0]
            continue
        kept = min(prefix, before[1]) // block_size
        new = prompt // block_size - kept
        blocks = np.concatenate([blocks[:kept], np.arange(count, count + new)])
        before, count = (session, prompt), count + new
        yield blocks


def remarks(rows: pl.DataFrame, *, timed: bool) -> list[str]:
    """What is not as one would expect it."""
    moved, alone = int(rows["moved"].sum()), int(rows["alone"].sum())
    found = []
    if not timed:
        found.append(f"no column {ARRIVAL}: every session begins at 0")
    if moved:
        found.append(f"{counted(moved, 'row')} with another {ARRIVAL} than the first of its session, which counts")
    if alone:
        found.append(f"{counted(alone, 'first round')} with a prefix: nothing is before it, so it is new")
    return found

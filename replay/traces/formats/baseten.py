"""Baseten's completion traces, AIPerf's `baseten_trace`, as Parquet or Arrow: prompts as text, with counts.

`timestamp_start_unix_ms` is in milliseconds since 1970, `input_tokens` and `output_tokens` are counts, `prompt` is the
text. `total_hashes`, if there, are hashes of blocks of `block_size` tokens (64 where the file does not say), and
`provided_session_id` says which requests belong to one session; their turns follow each other in order of arrival, and
think times are unknown. `org_id` is the user.

AIPerf makes an answer of 0 tokens one of 1; here such a request has failed, and is skipped and counted, as everywhere.
Cancelled requests (`request_canceled`) are skipped, too. What the request took at the time, and its answer's text, are
left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from replay.errors import TraceError
from replay.traces.foreign.columnar import scan_columns
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.foreign.json_lines import given
from replay.traces.formats import formats
from replay.traces.source import Raw, Source
from replay.traces.table import HashTail

BLOCK = 64
NAMES = ("timestamp_start_unix_ms", "input_tokens", "output_tokens")


@formats.register("baseten")
@dataclass(frozen=True, slots=True)
class Baseten:
    """Baseten traces, as AIPerf reads them (Parquet or Arrow, text, hashes of 64-token blocks)"""

    session: str = field(default="provided_session_id", metadata={"help": "the column of the sessions"})
    block_size: int | None = field(
        default=None,
        metadata={
            "help": f"tokens of one block, if the file does not say; else {BLOCK}",
            "minimum": 1,
            "maximum": 10**9,
        },
    )
    hash_tail: HashTail = field(
        default="ceil", metadata={"help": "whether a partial last block has a hash: ceil or floor"}
    )

    def fits(self, look: Glimpse) -> bool:
        return look.includes("parquet", all_of=NAMES)

    def read(self, path: Path) -> Source:
        raw = scan_columns(path)
        for name, dtype in raw.rows.select(name for name in NAMES if name in raw.names).collect_schema().items():
            if not dtype.is_integer():
                raise TraceError(f"{path}: the column {name!r} is {dtype}, but must be whole numbers")
        cancelled = (
            {"cancelled": pl.col("request_canceled").cast(pl.Int64) != 0} if "request_canceled" in raw.names else {}
        )
        fields = {
            "arrival_ms": given(NAMES[0]),
            "prompt_tokens": given(NAMES[1]),
            "output_tokens": given(NAMES[2]),
            "user": given("org_id", required=False),
            "session": given(self.session, required=self.session != "provided_session_id"),
            "prompt": given("prompt", required=False),
            "prefix_hashes": given("total_hashes", required=False),
        }
        return raw.source(
            fields,
            skips=cancelled,
            known=("block_size", "request_canceled", "total_hashes_len"),
            block_size=self.block_of(raw),
            hash_tail=self.hash_tail,
        )

    def block_of(self, raw: Raw) -> int:
        """The block size that the file says, else the one set; raises `TraceError` if the file says several."""
        said = []
        if "block_size" in raw.names:
            sizes = raw.rows.select(pl.col("block_size").drop_nulls().unique().sort())
            said = sizes.collect(engine="streaming").to_series().to_list()
        if len(said) > 1:
            shown = ", ".join(str(size) for size in said[:5])
            raise TraceError(f"{raw.path}: has hashes of blocks of different sizes ({shown}); a trace has one")
        if said and self.block_size not in (None, said[0]):
            raise TraceError(f"{raw.path}: its hashes are of blocks of {said[0]} tokens, not {self.block_size}")
        return int(said[0]) if said else self.block_size or BLOCK

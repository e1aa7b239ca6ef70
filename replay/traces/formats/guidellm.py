"""Traces as guidellm replays them (`--data kind=trace_synthetic`): CSV, JSON Lines or Parquet, times in seconds.

A row has a time, since the start or since 1970, and the tokens of a prompt and of an answer. What the columns are
called are options there (`timestamp_column`, `prompt_tokens_column`, `output_tokens_column`), and settings here with
the same names and defaults; so are `hash_ids_column` and `hash_id_block_size`, which guidellm itself looks at in its
kind `mooncake` only. There the last, partial block of a prompt has an id. Other columns are left out. Times in JSON are
as exact as a double: to the nanosecond since the start, to some hundred of them since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from replay.traces.foreign.columnar import scan_columns
from replay.traces.foreign.delimited import elapsed, refuse_folder, scan_csv, whole
from replay.traces.foreign.glimpse import Glimpse, glimpse
from replay.traces.foreign.json_lines import given
from replay.traces.foreign.length_lines import LengthLines
from replay.traces.formats import formats
from replay.traces.source import Source

BLOCK = 512


@formats.register("guidellm")
@dataclass(frozen=True, slots=True)
class GuideLlm:
    """guidellm's trace_synthetic (CSV, JSON Lines or Parquet, times in s, columns by settable names)"""

    timestamp_column: str = field(default="timestamp", metadata={"help": "the column of the times, in seconds"})
    prompt_tokens_column: str = field(default="input_length", metadata={"help": "the column of the prompts' tokens"})
    output_tokens_column: str = field(default="output_length", metadata={"help": "the column of the answers' tokens"})
    hash_ids_column: str = field(default="hash_ids", metadata={"help": "the column of the blocks' hash ids, if any"})
    hash_id_block_size: int = field(
        default=BLOCK, metadata={"help": "tokens of one block of hash ids", "minimum": 1, "maximum": 10**9}
    )

    @property
    def names(self) -> tuple[str, str, str]:
        return self.timestamp_column, self.prompt_tokens_column, self.output_tokens_column

    def fits(self, look: Glimpse) -> bool:
        return look.has("csv", "json lines", "parquet", all_of=self.names, may=("duration", self.hash_ids_column))

    def read(self, path: Path) -> Source:
        refuse_folder(path)
        kind = glimpse(path).kind
        if kind == "parquet":
            return self.parquet(path)
        if kind in ("json lines", "json"):
            lines = LengthLines(*self.names, self.hash_ids_column, "s")
            return lines.read(path, block_size=self.hash_id_block_size, hash_tail="ceil")
        time, prompt, output = self.names
        return scan_csv(path).source(
            {"arrival_ns": elapsed(time, "s"), "prompt_tokens": whole(prompt), "output_tokens": whole(output)}
        )

    def parquet(self, path: Path) -> Source:
        """Columns of numbers, times as numbers or as Parquet's own."""
        raw = scan_columns(path)
        time, prompt, output = self.names
        dated = time in raw.names and raw.rows.collect_schema()[time].is_temporal()
        return raw.source(
            {
                "arrival" if dated else "arrival_s": given(time),
                "prompt_tokens": given(prompt),
                "output_tokens": given(output),
                "prefix_hashes": given(self.hash_ids_column, required=False),
            },
            block_size=self.hash_id_block_size,
        )

"""Mooncake traces (Qin et al., FAST 2025) as JSON Lines: times in milliseconds, lengths, hashes of 512-token blocks.

Hashes are global, and the last, partial block of a prompt has one. Many rows share an instant, because the arrivals
were recorded in ticks; exact duplicates are requests of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from replay.traces.formats import formats
from replay.traces.glimpse import Glimpse
from replay.traces.json_lines import given, scan_json_lines
from replay.traces.source import Source

BLOCK = 512
FIELDS = {
    "timestamp": pl.Float64(),
    "input_length": pl.Int64(),
    "output_length": pl.Int64(),
    "hash_ids": pl.List(pl.Int64()),
}


@formats.register("mooncake")
@dataclass(frozen=True, slots=True)
class Mooncake:
    """Mooncake traces (JSON Lines, times in ms, hashes of 512-token blocks)"""

    def fits(self, look: Glimpse) -> bool:
        return look.has("json lines", all_of=FIELDS)

    def read(self, path: Path) -> Source:
        return scan_json_lines(path, FIELDS).source(
            {
                "arrival_ms": given("timestamp"),
                "prompt_tokens": given("input_length"),
                "output_tokens": given("output_length"),
                "prefix_hashes": given("hash_ids", required=False),
            },
            block_size=BLOCK,
        )

"""Traces of the simulator Vidur (Agrawal et al., MLSys 2024) as CSV: seconds since the start, and two token counts.

Its own files are made by subtracting times as floats, so that 5.892655 may stand there as 5.8926549999999995: arrivals
are rounded to the nanosecond, digit by digit, which gives 5.892655 back. Written are nine digits, so nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from replay.traces.foreign.delimited import elapsed, scan_csv, whole
from replay.traces.foreign.exporting import left_out, seconds_text
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.formats import formats
from replay.traces.source import Source
from replay.traces.table import Trace

NAMES = ("arrived_at", "num_prefill_tokens", "num_decode_tokens")


@formats.register("vidur")
@dataclass(frozen=True, slots=True)
class Vidur:
    """Traces of the simulator Vidur (CSV, seconds)"""

    def fits(self, look: Glimpse) -> bool:
        return look.includes("csv", all_of=NAMES)

    def read(self, path: Path) -> Source:
        time, prompt, output = NAMES
        return scan_csv(path).source(
            {"arrival_ns": elapsed(time, "s"), "prompt_tokens": whole(prompt), "output_tokens": whole(output)}
        )

    def write(self, trace: Trace, file: Path) -> list[str]:
        columns = (seconds_text(), pl.col("prompt_tokens"), pl.col("output_tokens"))
        trace.rows.select(each.alias(name) for name, each in zip(NAMES, columns, strict=True)).sink_csv(file)
        return left_out(trace)

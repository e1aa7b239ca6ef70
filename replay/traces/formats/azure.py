"""Azure LLM inference traces as CSV: one column of times, two of token counts.

2023 (Splitwise, ISCA 2024) has naive times with 7 digits, 2024 (DynamoLLM, HPCA 2025) has zones and leaves out a
fraction of zero, 2025 (ModServe) has milliseconds, `Z` and a further column: all are read the same way, and a time
without a zone is UTC.

A trace is written as in 2023: naive times with 7 digits, or with 9 where 7 would not hold an arrival to the nanosecond.
The format knows instants only, so a trace, which begins at 0, is given one to begin at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from replay.errors import ExperimentError
from replay.traces.foreign.delimited import YEARS, instant, scan_csv, whole
from replay.traces.foreign.exporting import left_out
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.formats import formats
from replay.traces.source import Source
from replay.traces.table import Trace

NAMES = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
WRITTEN = "%Y-%m-%d %H:%M:%S%.9f"
TICK, SHORT = 100, len("2023-11-16 18:15:46.6805900")  # nanoseconds that 7 digits hold, and a time with so many
LATEST = 2**63 - 1  # nanoseconds since 1970


@formats.register("azure")
@dataclass(frozen=True, slots=True)
class Azure:
    """Azure LLM inference traces of 2023, 2024 and 2025 (CSV)"""

    start: str = field(
        default="1970-01-01 00:00:00", metadata={"help": "for export: the instant of the first arrival, in quotes"}
    )

    def __post_init__(self) -> None:
        if self.begins is None:
            raise ExperimentError(
                f"start: {self.start!r} is not a time such as 2023-11-16 18:15:46.6805900, with Z or +00:00 or none, "
                f"of the years {YEARS[0]} to {YEARS[1]}"
            )

    @property
    def begins(self) -> int | None:
        """`start` as nanoseconds since 1970, None if it is no time or out of their reach."""
        time = pl.DataFrame({"start": [self.start]}).select(instant("start").value.dt.timestamp("ns"))
        found: int | None = time.item()
        return found

    def fits(self, look: Glimpse) -> bool:
        return look.includes("csv", all_of=NAMES)

    def read(self, path: Path) -> Source:
        time, prompt, output = NAMES
        return scan_csv(path).source(
            {"arrival": instant(time), "prompt_tokens": whole(prompt), "output_tokens": whole(output)}
        )

    def write(self, trace: Trace, file: Path) -> list[str]:
        begins = self.begins
        assert begins is not None, "checked when it was made"
        if begins + trace.span_nanoseconds > LATEST:
            raise ExperimentError(f"start: from {self.start} on, the trace would end after the year 2262")
        arrival = pl.col("arrival") + begins
        exact = trace.values((arrival % TICK == 0).all())["arrival"]
        text = arrival.cast(pl.Datetime("ns")).dt.strftime(WRITTEN)
        columns = (text.str.head(SHORT) if exact else text, pl.col("prompt_tokens"), pl.col("output_tokens"))
        trace.rows.select(each.alias(name) for name, each in zip(NAMES, columns, strict=True)).sink_csv(file)
        return [f"the first arrival is at {self.start}, as `-o start=...` says", *left_out(trace)]

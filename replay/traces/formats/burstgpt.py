"""BurstGPT (Wang et al., 2024): months of ChatGPT and GPT-4 requests at a campus, as CSV, times in seconds.

The first four months (v1, v2) have whole seconds from midnight of the first day. The next ones (`BurstGPT_3.csv`)
insert `Session ID` and `Elapsed time` after the first column, and their clock starts at 19,440,110.0: columns are found
by name, and arrivals count from the first request. A failed request has 0 response tokens.

A conversation is a session of a closed loop: its requests in order of time are its turns, failed ones counted, so that
a number is lacking where one failed. `Elapsed time` is taken as the seconds that the answer took, which fits the files
(43 s for 446 tokens of GPT-4) though no schema says it: the think time of a turn is what was left from the end of the
answer before, at least 0. Rows of the API have no session. There are no users; what there is of classes is the model
(`Model`), and the way it was called (`Log Type`): one of them becomes the class of service.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import polars as pl

from replay.traces.faults import ROW
from replay.traces.foreign.delimited import elapsed, scan_csv, text, whole
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.formats import formats
from replay.traces.source import SKIP, Source

TIME, PROMPT, OUTPUT, CLASSES = "Timestamp", "Request tokens", "Response tokens", ("Model", "Log Type")
NAMES = (TIME, PROMPT, OUTPUT, *CLASSES)
SESSION, TOOK = "Session ID", "Elapsed time"
MILLISECOND = 1_000_000  # in nanoseconds


@formats.register("burstgpt")
@dataclass(frozen=True, slots=True)
class BurstGpt:
    """BurstGPT of every release (CSV, seconds; conversations as sessions, the model as the class)"""

    slo: Literal["Model", "Log Type", "none"] = field(
        default="Model", metadata={"help": "what becomes the class of service: Model, Log Type or none"}
    )

    def fits(self, look: Glimpse) -> bool:
        return look.includes("csv", all_of=NAMES)

    def read(self, path: Path) -> Source:
        raw = scan_csv(path)
        fields = {"arrival_ns": elapsed(TIME, "s"), "prompt_tokens": whole(PROMPT), "output_tokens": whole(OUTPUT)}
        if self.slo != "none":
            fields["slo"] = text(self.slo)
        if SESSION in raw.names:
            fields |= {"session": text(SESSION), TOOK: elapsed(TOOK, "s", required=False)}
        source = raw.source(fields, known=("Total tokens",))
        return replace(source, rows=with_turns(source.rows)) if SESSION in raw.names else source


def with_turns(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The rows with the turns and think times of those that have a session; failed ones are no turn to wait for."""
    names = rows.collect_schema().names()
    took = pl.col(TOOK) if TOOK in names else pl.lit(None, pl.Int64)
    of_session = pl.col("session")
    ordered = (
        rows.filter(of_session.is_not_null())
        .select(
            ROW,
            "session",
            "arrival_ns",
            answered=(pl.col("output_tokens") != 0) & pl.col(SKIP).is_null(),
            end=pl.col("arrival_ns") + took,
        )
        .sort("session", "arrival_ns", ROW)
    )
    turns = ordered.select(ROW, turn=pl.int_range(pl.len()).over("session"))
    follows = of_session == of_session.shift()
    left = (pl.col("arrival_ns") - pl.col("end").shift()).clip(lower_bound=0) / MILLISECOND
    thought = ordered.filter("answered").select(ROW, think_time_ms=pl.when(follows).then(left))
    for found in (turns, thought):
        rows = rows.join(found, on=ROW, how="left", maintain_order="left")
    return rows.drop(TOOK, strict=False)

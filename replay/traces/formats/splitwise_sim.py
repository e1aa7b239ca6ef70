"""Traces of the simulator Splitwise-sim (Patel et al., "Splitwise", ISCA 2024) as CSV, times in seconds.

The application that a request targets (`application_id`) is the nearest to a user that there is, and becomes one. A
`request_type` of 2 is a language model's; the others, which the simulator names but does not run, are skipped. A row
with a `batch_size` of several stands for so many sequences of one length that come together: it becomes as many
requests, all at its arrival, with `/1`, `/2`, ... after its `request_id`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from replay.traces.foreign.delimited import elapsed, scan_csv, text, whole
from replay.traces.foreign.glimpse import Glimpse
from replay.traces.formats import formats
from replay.traces.source import Field, Source

NAMES = (
    "request_id", "request_type", "application_id", "arrival_timestamp", "batch_size", "prompt_size", "token_size",
)  # fmt: skip
GENERATIVE = "2"
LARGEST = 4_096  # requests that one row may stand for
NUMBER = "__number"  # of a request within its batch, from 1


@formats.register("splitwise-sim")
@dataclass(frozen=True, slots=True)
class SplitwiseSim:
    """Traces of the simulator Splitwise-sim (CSV, seconds; the application is the user)"""

    def fits(self, look: Glimpse) -> bool:
        return look.includes("csv", all_of=NAMES)

    def read(self, path: Path) -> Source:
        kind = pl.col("request_type").str.strip_chars()
        source = scan_csv(path).source(
            {
                "arrival_ns": elapsed("arrival_timestamp", "s"),
                "prompt_tokens": whole("prompt_size"),
                "output_tokens": whole("token_size"),
                "request_id": text("request_id"),
                "user": text("application_id"),
                NUMBER: batch(),
            },
            skips={"request_type is not 2, a language model's": kind != GENERATIVE},
            known=("request_type",),
        )
        size = pl.col(NUMBER).fill_null(1)
        each = pl.col("request_id") + "/" + pl.col(NUMBER).cast(pl.String)
        rows = (
            source.rows.with_columns(size, several=size > 1)
            .with_columns(pl.int_ranges(1, pl.col(NUMBER) + 1).alias(NUMBER))
            .explode(NUMBER)
            .with_columns(pl.when(pl.col("several")).then(each).otherwise("request_id").alias("request_id"))
            .drop(NUMBER, "several")
        )
        return replace(source, rows=rows)


def batch() -> Field:
    """How many requests a row is; one where it does not say."""
    size = whole("batch_size").value
    return Field("batch_size", pl.when(size.is_between(1, LARGEST)).then(size), f"a number from 1 to {LARGEST:,}")

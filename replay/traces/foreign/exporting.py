"""What the writers of foreign formats share: arrivals as text, and the sentence on what a format has no place for."""

from __future__ import annotations

import polars as pl

from replay.clock import NANOSECONDS
from replay.traces.table import COLUMNS, Trace
from replay.traces.writing import unknown_columns

DIGITS = 9  # of a second, down to the nanosecond


def left_out(trace: Trace, *held: str) -> list[str]:
    """The remark on what is known of the requests beside arrivals, lengths and what is `held`; none if nothing is."""
    unknown = unknown_columns(trace)
    lost = [
        name for name, column in COLUMNS.items() if not (column.required or name in unknown or name in held)
    ]  # fmt: skip
    them = "it" if len(lost) == 1 else "them"
    return [f"left out: {', '.join(lost)} (the format has no place for {them})"] if lost else []


def seconds_text() -> pl.Expr:
    """Arrivals in seconds, with all digits: `4.314579000`."""
    whole, rest = pl.col("arrival") // NANOSECONDS, pl.col("arrival") % NANOSECONDS
    return whole.cast(pl.String) + "." + rest.cast(pl.String).str.pad_start(DIGITS, "0")

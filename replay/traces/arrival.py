"""Arrival times in every form that a file may have, as exact nanoseconds.

Instants are counted from 1970 in UTC (a time without a zone is UTC), offsets from their own zero; whoever calls
re-bases them. It never guesses a unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from replay.errors import TraceError
from replay.traces.faults import Rule

TIME_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000}
NUMBERS = {f"arrival_{unit}": size for unit, size in {**TIME_UNITS, "s": 1_000_000_000}.items()}
FORMS = (
    "a Duration or Datetime named arrival, or a number with its unit in its name "
    "(arrival_s, arrival_ms, arrival_us, arrival_ns)"
)
LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ArrivalForm:
    """How one file gives its arrivals: in which column, as instants or as offsets, and in which zone."""

    column: str
    kind: Literal["datetime", "offset"]
    dtype: pl.DataType

    @property
    def naive(self) -> bool:
        """Whether these are instants of which the file does not say in which zone."""
        return isinstance(self.dtype, pl.Datetime) and self.dtype.time_zone is None

    @property
    def text(self) -> str:
        """For sentences: `arrival_ms (Int64)`."""
        return f"{self.column} ({self.dtype})"


def arrival_form(schema: pl.Schema, file: Path) -> ArrivalForm:
    """Which column holds the arrivals, and how; raises `TraceError` where that is not clear."""
    found = [name for name in schema if name == "arrival" or name in NUMBERS]
    if not found:
        raise TraceError(f"{file}: no column holds the arrivals; right would be {FORMS}")
    if len(found) > 1:
        raise TraceError(f"{file}: the columns {' and '.join(found)} both hold arrivals; leave one of them")
    column = found[0]
    dtype = schema[column]
    if column == "arrival":
        if isinstance(dtype, pl.Datetime):
            return ArrivalForm(column, "datetime", dtype)
        if isinstance(dtype, pl.Duration):
            return ArrivalForm(column, "offset", dtype)
        what = "does not say its unit" if dtype.is_numeric() else f"is {dtype}"
        raise TraceError(f"{file}: the column 'arrival' {what}; right would be {FORMS}")
    if not dtype.is_numeric():
        raise TraceError(f"{file}: the column {column!r} is {dtype}; right would be {FORMS}")
    return ArrivalForm(column, "offset", dtype)


def arrival_nanoseconds(form: ArrivalForm) -> tuple[pl.Expr, list[Rule]]:
    """The arrivals as Int64 nanoseconds, none lost, and what they may not be: null, negative or out of range.

    A float is split into its whole part and its fraction first, so that it is rounded once, at the nanosecond.
    """
    column, value = form.column, pl.col(form.column)
    right = "a number" if form.column in NUMBERS else form.kind
    rules = [Rule(column, value.is_null(), f"given: an arrival is a {right}")]
    unit = NUMBERS[column] if column in NUMBERS else TIME_UNITS[form.dtype.time_unit]  # type: ignore[attr-defined]  # a Datetime or Duration, by arrival_form
    if form.dtype.is_temporal():
        value = value.to_physical()
    if form.dtype.is_float():
        value = value.cast(pl.Float64)
        rules.append(Rule(column, ~value.is_finite(), "a finite number"))
    reach = LARGEST // unit
    beyond = (value > reach) | (value < -reach)
    rules.append(Rule(column, beyond, f"within {reach:.3g} of zero: is its unit what the name says?"))
    if form.kind == "offset":
        rules.append(Rule(column, value < 0, "0 or later"))
    if form.dtype.is_float():
        whole = value.floor()
        exact = whole.cast(pl.Int64, strict=False) * unit + ((value - whole) * unit).round().cast(
            pl.Int64, strict=False
        )
    elif form.dtype.is_decimal():
        exact = (value * unit).cast(pl.Int64, strict=False)
    else:
        exact = value.cast(pl.Int64, strict=False) * unit
    return exact.alias("arrival"), rules

"""Logs that write down when a request ended and how long it took, in place of when it came.

It knows neither columns nor formats: the setting names the column and the unit of that time.
"""

from __future__ import annotations

import polars as pl

from replay.errors import ExperimentError, TraceError
from replay.traces.arrival import arrival_form, arrival_nanoseconds
from replay.traces.foreign.delimited import UNITS, elapsed
from replay.traces.source import Field, Source

TOOK = "__took"  # beside a source's columns: how long requests took


def parse_took(setting: str) -> tuple[str, str] | None:
    """Column and unit of a setting such as "request_time s"; None of an empty one. Raises `ExperimentError`."""
    *words, unit = setting.split() or [""]
    if not unit:
        return None
    if not words or unit not in UNITS:
        raise ExperimentError(f"took: {setting!r} is not a column and its unit, such as 'request_time s'")
    return " ".join(words), unit


def took_field(column: str, unit: str, schema: pl.Schema) -> Field:
    """How long requests took, as whole nanoseconds."""
    if schema[column] == pl.String:
        return elapsed(column, unit)
    if not schema[column].is_numeric():
        raise TraceError(f"the column {column!r} is {schema[column]}, but must be numbers ({unit})")
    return Field(column, (pl.col(column) * UNITS[unit]).round().cast(pl.Int64, strict=False), f"a number ({unit})")


def started(source: Source) -> Source:
    """The source with the time at which each request came, in place of the time at which it ended."""
    form = arrival_form(source.rows.collect_schema(), source.path)
    came = arrival_nanoseconds(form)[0] - pl.col(TOOK)
    source.rows = source.rows.with_columns(came.cast(pl.Datetime("ns")).alias("arrival"))
    source.rows = source.rows.drop(TOOK, *({form.column} - {"arrival"}))
    return source

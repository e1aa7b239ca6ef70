"""The columns of somebody's table as the user names them: OURS=THEIRS, with a unit in the name where one is needed.

It knows the canonical columns and no file. A foreign column becomes a `Field`, whatever type the file has it in.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import replace

import polars as pl

from replay.errors import ExperimentError, TraceError
from replay.registry import nearest
from replay.traces.arrival import NUMBERS
from replay.traces.foreign.delimited import UNITS, elapsed, instant, number, text, whole
from replay.traces.foreign.json_lines import given
from replay.traces.source import Field
from replay.traces.table import COLUMNS

# A time that is a number says its unit in our name for it; these are numbers of milliseconds in a trace.
SPANS = {f"{stem}_{unit}": (f"{stem}_ms", unit) for stem in ("think_time", "deadline") for unit in UNITS}
OURS = (*COLUMNS, *NUMBERS, *(name for name in SPANS if name not in COLUMNS))
BY_UNIT = "arrival_s, arrival_ms, arrival_us or arrival_ns"
NEEDED = tuple(name for name, column in COLUMNS.items() if column.required and name != "arrival")
UNITLESS = f"a bare number says no unit: name it {BY_UNIT}"


def parse_pairs(written: str, option: str, example: str) -> dict[str, str]:
    """`A=B,C=D` as a table; a pair with a comma in it stands in double quotes. Raises `ExperimentError`."""
    found: dict[str, str] = {}
    for pair in next(csv.reader([written], skipinitialspace=True), []):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not name:
            raise ExperimentError(f"{option}: {pair!r} is not {example}")
        if name in found:
            raise ExperimentError(f"{option}: {name} stands there twice")
        found[name] = value
    return found


def parse_map(written: str) -> dict[str, str]:
    """`--map` as canonical names and foreign ones; an empty foreign name leaves a column out."""
    found = parse_pairs(written, "--map", "OURS=THEIRS, such as prompt_tokens=in")
    for name in found:
        if name not in OURS:
            times = f"a time is {BY_UNIT} if it is a number, by its unit, and arrival if it is text"
            hint = times if name.startswith(("arriv", "time", "ts")) else nearest(name, OURS)
            raise ExperimentError(f"--map: a trace has no column {name!r}: {hint}")
    arrivals = [name for name in found if is_arrival(name) and found[name]]
    if len(arrivals) > 1:
        raise ExperimentError(f"--map: {' and '.join(arrivals)} both are the arrival; leave one of them")
    return found


def is_arrival(name: str) -> bool:
    """Whether a canonical name is one of those that hold arrivals."""
    return name == "arrival" or name in NUMBERS


def matched(mapping: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Canonical names with the file's: what is mapped, and what the file calls by our names already."""
    arrives = any(is_arrival(name) for name in mapping)
    own = {name: name for name in names if name in OURS and not (arrives and is_arrival(name))}
    return {name: theirs for name, theirs in {**own, **mapping}.items() if theirs}


def asked(chosen: Mapping[str, str]) -> str:
    """The question for all columns that a trace needs and nobody mapped; empty if there are none."""
    lacking = [needed for needed in NEEDED if needed not in chosen]
    how = ""
    if not any(is_arrival(ours) for ours in chosen):
        the_arrival = " the arrival" if lacking else ""
        how = f",{the_arrival} as {BY_UNIT} by its unit, or as arrival if it is a time such as 2023-11-16 18:15:46"
        lacking.append("the arrival")
    if not lacking:
        return ""
    if len(lacking) == 1:
        return f"which column is {lacking[0]}? Name it in --map{how}"
    return f"which columns are {', '.join(lacking[:-1])} and {lacking[-1]}? Name them in --map{how}"


def field_of(ours: str, theirs: str, dtype: pl.DataType) -> tuple[str, Field]:
    """A canonical name, and how its values come from a column of this type. Raises `TraceError`, without the file."""
    written = dtype in (pl.String, pl.Categorical, pl.Enum)
    if is_arrival(ours):
        return arrival_of(ours, theirs, dtype, written=written)
    if ours in SPANS:
        canonical, unit = SPANS[ours]
        factor = UNITS[unit] / UNITS["ms"]
        if isinstance(dtype, pl.Duration):
            return canonical, Field(theirs, pl.col(theirs).dt.total_nanoseconds() / UNITS["ms"], "a duration")
        field = number(theirs) if written else given(theirs)
        return canonical, field if factor == 1 else replace(field, value=field.value * factor)
    kind = COLUMNS[ours].kind
    if written:
        return ours, {"whole": whole, "number": number, "text": text, "whole list": wholes}[kind](theirs)
    if kind == "whole" and dtype.is_float():
        value = pl.col(theirs).fill_nan(None)
        fits = pl.when(value == value.floor()).then(value).cast(pl.Int64, strict=False)
        return ours, Field(theirs, pl.when(value.is_null()).then(None).otherwise(fits), "a whole number")
    return ours, given(theirs)


def arrival_of(ours: str, theirs: str, dtype: pl.DataType, *, written: bool) -> tuple[str, Field]:
    """The same for arrivals: instants in text or as Datetimes, numbers in text or as numbers."""
    if ours == "arrival":
        if dtype.is_numeric():
            raise TraceError(f"the column {theirs!r} is a number ({dtype}), but {UNITLESS}")
        if not written:
            return ours, given(theirs)
        field = instant(theirs)
        return ours, replace(field, right=f"{field.right}; {UNITLESS}")
    if dtype.is_temporal():
        raise TraceError(f"the column {theirs!r} is a {dtype}, which has a unit of its own: map it as arrival={theirs}")
    if not written:
        return ours, given(theirs)
    field = elapsed(theirs, ours.removeprefix("arrival_"))
    return "arrival_ns", replace(field, right=f"{field.right}; a time in text is arrival={theirs}")


def wholes(column: str) -> Field:
    """Lists of whole numbers in text: `[1, 2]`, `1 2` or `1;2`."""
    parts = pl.col(column).str.strip_chars("[]() \t").str.replace_all(r"[,;\s]+", " ").str.split(" ")
    values = parts.list.eval(pl.element().filter(pl.element() != "").cast(pl.Int64, strict=False))
    found = pl.when(~values.list.eval(pl.element().is_null()).list.any()).then(values)
    return Field(column, found, "a list of whole numbers, such as [1, 2]")

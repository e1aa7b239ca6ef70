"""CSV files of other people, read as text first, so that a value that is wrong can be named with its row.

It knows no format: the importer says which columns it wants and what they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl
from polars.exceptions import NoDataError, PolarsError

from replay.clock import NANOSECONDS
from replay.errors import TraceError
from replay.traces.faults import ROW
from replay.traces.source import Field, Raw, first_line, is_large
from replay.traces.wording import listed

# An instant: date and time, perhaps a fraction of 1 to 9 digits, perhaps a zone (Z, +00:00, +0000); none means UTC.
SECONDS = len("2023-11-16 18:15:46")
YEARS = ("1678", "2261")  # the first and the last of which nanoseconds of 64 bits hold every instant
AFTER_SECONDS = r"^(?:\.\d{1,9})?\s*(?:Z|[+-]\d\d:?\d\d)?$"
FRACTION = r"^\.(\d+)"
ZONE = r"([+-]\d\d):?(\d\d)$"
DECIMAL = r"^\s*(-?)(\d{1,19})(?:\.(\d*))?\s*$"  # a number whose digits can be counted, unlike 1.5e-05
LARGEST = 2**63 - 1
Unit = Literal["s", "ms", "us", "ns"]
UNITS: dict[str, int] = {"s": NANOSECONDS, "ms": 1_000_000, "us": 1_000, "ns": 1}


def scan_csv(file: Path, *, header: tuple[str, ...] | None = None, separator: str = ",") -> Raw:
    """All columns as text, with `ROW` (from 0, the header not counted); blank lines are no rows, packed files are fine.

    A file without a header line has its columns named by `header`. Raises `TraceError` if the file is not CSV.
    """
    refuse_folder(file)

    def misread(fault: Exception) -> TraceError:
        return TraceError(f"{file}: cannot be read as CSV ({first_line(fault)})")

    try:
        rows = pl.scan_csv(file, infer_schema=False, has_header=header is None, separator=separator)
        names = rows.collect_schema().names()
    except NoDataError as fault:
        raise TraceError(f"{file}: the trace holds no requests") from fault
    except (PolarsError, OSError) as fault:
        raise misread(fault) from fault
    if header and len(header) != len(names):
        raise TraceError(f"{file}: has {len(names)} columns, but {len(header)} names: {', '.join(header)}")
    stripped = [name.strip() for name in header or names]
    if len(set(stripped)) < len(stripped):
        raise TraceError(f"{file}: two columns have the same name; there are: {listed(stripped)}")
    rows = rows.rename(dict(zip(names, stripped, strict=True)))
    rows = rows.filter(~pl.all_horizontal(pl.col(stripped).is_null())).with_row_index(ROW)
    return Raw(file, rows, stripped, is_large(file), misread)


def whole(column: str, *, required: bool = True) -> Field:
    """Whole numbers; `7.0` is one."""
    text = pl.col(column).str.strip_chars().str.replace(r"\.0*$", "")
    return Field(column, text.cast(pl.Int64, strict=False), "a whole number", required)


def number(column: str, *, required: bool = True) -> Field:
    """Numbers, as the nearest Float64."""
    return Field(column, pl.col(column).str.strip_chars().cast(pl.Float64, strict=False), "a number", required)


def text(column: str, *, required: bool = True) -> Field:
    """Text as it stands."""
    return Field(column, pl.col(column), "text", required)


def elapsed(column: str, unit: str, *, required: bool = True) -> Field:
    """Numbers of `unit` (s, ms, us, ns) as whole nanoseconds, digit by digit where written out; for `arrival_ns`."""
    size = UNITS[unit]
    digits = len(str(size)) - 1
    parts = pl.col(column).str.extract_groups(DECIMAL)
    part = [parts.struct[n] for n in range(3)]
    fraction = part[2].fill_null("").str.pad_end(digits, "0").str.head(digits)
    following = part[2].fill_null("").str.slice(digits, 1)
    whole_units = part[1].cast(pl.Int64, strict=False)
    exact = (
        pl.when(whole_units < LARGEST // size).then(whole_units) * size
        + (fraction.cast(pl.Int64, strict=False) if digits else pl.lit(0)).fill_null(0)
        + (following >= "5").cast(pl.Int64)
    )
    exact = pl.when(part[0] == "-").then(-exact).otherwise(exact)
    rough = pl.col(column).str.strip_chars().cast(pl.Float64, strict=False)
    rounded = pl.when(rough.is_finite() & (rough.abs() * size < 2**63)).then((rough * size).round()).cast(pl.Int64)
    return Field(column, pl.coalesce(exact, rounded), f"a number ({unit})", required)


def instant(column: str, *, required: bool = True) -> Field:
    """Times in text as naive UTC Datetimes, every digit kept; for `arrival`."""
    written = pl.col(column).str.strip_chars()
    base = written.str.head(SECONDS).str.replace("T", " ", literal=True)
    base = base.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="ns", strict=False)
    rest = written.str.slice(SECONDS)
    fraction = rest.str.extract(FRACTION).str.pad_end(9, "0").cast(pl.Int64, strict=False).fill_null(0)
    hours, minutes = (rest.str.extract(ZONE, part).cast(pl.Int64, strict=False) for part in (1, 2))
    minutes = hours * 60 + pl.when(rest.str.contains("-", literal=True)).then(-minutes).otherwise(minutes)
    time = base + pl.duration(nanoseconds=fraction, minutes=-minutes.fill_null(0), time_unit="ns")
    held = written.str.head(4).is_between(pl.lit(YEARS[0]), pl.lit(YEARS[1]))
    time = pl.when(held & rest.str.contains(AFTER_SECONDS)).then(time)
    return Field(column, time, "a time such as 2023-11-16 18:15:46.6805900, with Z or +00:00 or none", required)


def refuse_folder(path: Path) -> None:
    """Refuse a folder where a format is one file."""
    if path.is_dir():
        raise TraceError(f"{path}: is a folder, but this format is one file")

"""CSV files of other people, read as text first, so that a value that is wrong can be named with its row.

It knows no format: the importer says which columns it wants and what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from polars.exceptions import NoDataError, PolarsError

from replay.errors import TraceError
from replay.traces.faults import FILE, ROW, refuse_rows
from replay.traces.reading import first_line, refuse_folder

# An instant: date, time, perhaps a fraction of 1 to 9 digits, perhaps a zone (Z, +00:00, +0000); none means UTC.
INSTANT = r"^\s*(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\s*(?:Z|([+-])(\d\d):?(\d\d))?\s*$"


def read_csv(file: Path, columns: Sequence[str]) -> pl.DataFrame:
    """All columns as text, with `ROW` (from 0, the header not counted) and `FILE`; blank lines are no rows.

    Raises `TraceError` if one of `columns` is missing, or if the file is not CSV.
    """
    refuse_folder(file)
    try:
        frame = pl.read_csv(file, infer_schema=False)
    except NoDataError as fault:
        raise TraceError(f"{file}: the trace holds no requests") from fault
    except (PolarsError, OSError) as fault:
        raise TraceError(f"{file}: cannot be read as CSV ({first_line(fault)})") from fault
    frame = frame.rename({name: name.strip() for name in frame.columns})
    for name in columns:
        if name not in frame.columns:
            raise TraceError(f"{file}: the column {name!r} is missing; there are: {', '.join(frame.columns)}")
    blank = pl.all_horizontal(pl.col(frame.columns).is_null())
    return frame.filter(~blank).with_row_index(ROW).with_columns(pl.lit(0, pl.Int32).alias(FILE))


def whole_numbers(frame: pl.DataFrame, column: str, file: Path) -> pl.Series:
    """A column of text as whole numbers; refuses the first that is none."""
    value = pl.col(column).str.strip_chars().cast(pl.Int64, strict=False)
    refuse_rows(frame, [file], column, value.is_null(), "a whole number")
    return frame.select(value).to_series()


def instants(frame: pl.DataFrame, column: str, file: Path) -> pl.Series:
    """A column of times in text as naive UTC Datetimes, every digit kept; refuses the first that is none."""
    parts = pl.col(column).str.extract_groups(INSTANT)
    part = [parts.struct[n] for n in range(6)]
    base = (part[0] + " " + part[1]).str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="ns", strict=False)
    fraction = part[2].fill_null("").str.pad_end(9, "0").cast(pl.Int64)
    minutes = part[4].cast(pl.Int64) * 60 + part[5].cast(pl.Int64)
    east = pl.when(part[3] == "-").then(-minutes).otherwise(minutes).fill_null(0)
    time = base + pl.duration(nanoseconds=fraction) - pl.duration(minutes=east, time_unit="ns")
    right = "a time such as 2023-11-16 18:15:46.6805900, with Z or +00:00 or none"
    refuse_rows(frame, [file], column, base.is_null(), right)
    return frame.select(time).to_series()

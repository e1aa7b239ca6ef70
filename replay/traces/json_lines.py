"""JSON Lines files of other people: one object a line, a few fields of which an importer wants.

It knows no format. What Polars refuses is looked for line by line, so that the sentence can name the row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from replay.errors import TraceError
from replay.traces.faults import FILE, ROW
from replay.traces.reading import first_line, refuse_folder


def read_json_lines(file: Path, fields: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """These fields of every line, null where a line has none, with `ROW` (from 0) and `FILE`; raises `TraceError`."""
    refuse_folder(file)
    try:
        frame = pl.read_ndjson(file, schema=dict(fields))
    except (PolarsError, OSError) as fault:
        raise TraceError(
            faulty_line(file, fields) or f"{file}: cannot be read as JSON Lines ({first_line(fault)})"
        ) from fault
    if frame.is_empty():
        raise TraceError(f"{file}: the trace holds no requests")
    return frame.with_row_index(ROW).with_columns(pl.lit(0, pl.Int32).alias(FILE))


def faulty_line(file: Path, fields: Mapping[str, pl.DataType]) -> str | None:
    """The sentence for the first line that is no JSON object or has a field of the wrong type; None if all are well."""
    with file.open("rb") as lines:
        for row, line in enumerate(line for line in lines if line.strip()):
            place = f"{file}, row {row} (counted from 0)"
            try:
                entry = json.loads(line)
            except ValueError:
                return f"{place}: is not JSON; each line must be one object"
            if not isinstance(entry, dict):
                return f"{place}: is not a JSON object"
            for field, dtype in fields.items():
                value = entry.get(field)
                values = value if isinstance(value, list) and dtype == pl.List else [value]
                kinds = (int, float) if dtype.is_float() else (int,)
                if any(isinstance(v, bool) or not isinstance(v, kinds) for v in values if v is not None):
                    return f"{place}, column {field!r}: {value!r:.60}, but must be of type {dtype}"
    return None

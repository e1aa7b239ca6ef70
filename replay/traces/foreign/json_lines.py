"""JSON Lines files of other people: one object a line, a few fields of which an importer wants.

It knows no format. What Polars refuses is looked for line by line, so that the sentence can name the row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from replay.errors import TraceError
from replay.traces.faults import ROW, place_text
from replay.traces.foreign.delimited import refuse_folder
from replay.traces.foreign.opening import TOO_DEEP, UNREADABLE, open_text
from replay.traces.source import Field, Raw, first_line, is_large


def scan_json_lines(file: Path, fields: Mapping[str, pl.DataType]) -> Raw:
    """These fields of every line, null where a line has none, with `ROW` (from 0); packed files are fine."""
    refuse_folder(file)

    def misread(fault: Exception) -> TraceError:
        found = faulty_line(file, fields)
        return TraceError(found or f"{file}: cannot be read as JSON Lines ({first_line(fault)})")

    rows = pl.scan_ndjson(file, schema=dict(fields)).with_row_index(ROW)
    return Raw(file, rows, list(fields), is_large(file), misread)


def given(column: str, *, required: bool = True) -> Field:
    """A field as it stands, of the type that it was read with."""
    return Field(column, pl.col(column), "given", required)


def faulty_line(file: Path, fields: Mapping[str, pl.DataType]) -> str | None:
    """The sentence for the first line that is no JSON object or has a field of the wrong type; None if all are well."""
    with open_text(file) as lines:
        try:
            for row, line in enumerate(line for line in lines if line.strip()):
                try:
                    entry = json.loads(line)
                except ValueError:
                    return f"{place_text(file, row)}: is not JSON; each line must be one object"
                except RecursionError:
                    return f"{place_text(file, row)}: {TOO_DEEP}"
                if not isinstance(entry, dict):
                    return f"{place_text(file, row)}: is not a JSON object"
                for field, dtype in fields.items():
                    if not holds(entry.get(field), dtype):
                        wrong = f"{entry.get(field)!r:.60}, but must be of type {dtype}"
                        return f"{place_text(file, row, field)}: {wrong}"
        except UnicodeDecodeError:
            return f"{file}: is not text in UTF-8, so it is not JSON Lines"
        except UNREADABLE as fault:
            return f"{file}: cannot be read ({first_line(fault)})"
    return None


def holds(value: Any, dtype: pl.DataType) -> bool:
    """Whether a JSON value is null or of a type."""
    if isinstance(dtype, pl.List):
        items = value if isinstance(value, list) else [value]
        return all(holds(item, dtype.inner) for item in items)  # type: ignore[arg-type]  # a type, not a class
    if value is None:
        return True
    if dtype.is_integer():
        least, beyond = (0, 2**64) if dtype == pl.UInt64() else (-(2**63), 2**63)
        return isinstance(value, int) and not isinstance(value, bool) and least <= value < beyond
    return isinstance(value, (int, float) if dtype.is_float() else (str, int, float)) and not isinstance(value, bool)

"""The rows of a replay, read back from the file of a table or from the parts of one that was never joined.

It knows files and columns, and neither cells nor runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import polars as pl
import pyarrow as pa

from replay.errors import OutputError
from replay.records import SCHEMAS


def read_table(name: str, files: Sequence[Path]) -> pl.DataFrame:
    """The rows of `requests`, `steps` or `spans` in these files, in their order; none of no files.

    OutputError when a file cannot be read, lacks a column or holds in it what no replay writes. A broken last part
    is what a killed process leaves, and is passed over.
    """
    tables = [_empty(name)]
    for file in files:
        try:
            rows = pl.read_parquet(file, glob=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            if file == files[-1] and ".part-" in file.name:
                continue
            raise OutputError(f"{file}: not a readable Parquet file ({first_line(error)})") from error
        if missing := [column for column in tables[0].columns if column not in rows.columns]:
            raise OutputError(f"{file}: lacks the column {missing[0]!r}, so it is not a table of {name!r}")
        tables.append(_typed(file, rows, tables[0].schema))
    return pl.concat(tables)


@cache
def _empty(table: str) -> pl.DataFrame:
    empty = pl.from_arrow(pa.Table.from_batches([], schema=SCHEMAS[table]))
    assert isinstance(empty, pl.DataFrame)
    return empty


def _typed(file: Path, rows: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """The columns of a table, in their types. OutputError where one is of another, or holds NaN or infinity."""
    columns = {}
    for name, dtype in schema.items():
        try:
            columns[name] = rows[name] if rows[name].dtype == dtype else rows[name].cast(dtype)
        except pl.exceptions.PolarsError as error:
            raise OutputError(f"{file}: column {name!r} is {rows[name].dtype}, not {dtype}") from error
        if dtype.is_float() and not columns[name].is_finite().all():
            raise OutputError(f"{file}: column {name!r} holds NaN or infinity; what is not defined is null")
    return pl.DataFrame(columns)


def first_line(error: Exception) -> str:
    """What an error says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

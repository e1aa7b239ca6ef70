"""Parquet and Arrow files of other people, as they stand; it knows no format."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from polars.exceptions import PanicException, PolarsError

from replay.errors import TraceError
from replay.traces.faults import ROW
from replay.traces.foreign.delimited import refuse_folder
from replay.traces.scratch import AT_ONCE
from replay.traces.source import Raw, first_line, is_large

ARROW = b"ARROW1"


def scan_columns(file: Path) -> Raw:
    """All columns, of the types that the file has them in, with `ROW` (from 0); raises `TraceError`."""
    refuse_folder(file)

    def misread(fault: Exception) -> TraceError:
        return TraceError(f"{file}: cannot be read as Parquet or Arrow ({first_line(fault)})")

    try:
        with file.open("rb") as stream:
            arrow = stream.read(len(ARROW)) == ARROW
        rows = pl.scan_ipc(file) if arrow else pl.scan_parquet(file, hive_partitioning=False)
        names = rows.collect_schema().names()
        height: int = rows.select(pl.len()).collect().item()
    except (PolarsError, OSError, PanicException) as fault:
        raise misread(fault) from fault
    return Raw(file, rows.with_row_index(ROW), names, height > AT_ONCE or is_large(file), misread)

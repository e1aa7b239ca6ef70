"""Writing a trace as one Parquet file that this package, or any other, can read.

It knows nothing of how the trace came about, and never leaves a half-written file under the target's name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import polars as pl
from polars.exceptions import PolarsError

from replay.errors import OutputError
from replay.traces.source import first_line
from replay.traces.table import COLUMNS, Trace
from replay.whole_files import replace_file

Made = TypeVar("Made")
LONGEST_NAME = 255  # bytes, on the file systems in use


def check_target(path: str | Path, *, force: bool) -> Path:
    """The path, if a trace can be written there; raises `OutputError`. Ask before the work, not after it."""
    path = Path(path)
    if os.fsencode(path) != str(path).encode(errors="replace"):
        raise OutputError(f"{os.fsencode(path)!r}: is a name that is not UTF-8; give another")
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        raise OutputError(f"{path}: the file's name is too long; at most {LONGEST_NAME} bytes")
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; name a file to write the trace to")
    if path.exists() and not force:
        raise OutputError(f"{path}: is there already; give another name, or --force to replace it")
    if not path.parent.is_dir():
        raise OutputError(f"{path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path}: the folder {path.parent} cannot be written to")
    return path


def write_trace(trace: Trace, path: str | Path, *, force: bool = False) -> None:
    """Write the trace; optional columns of which nothing is known are left out. Raises `OutputError`.

    `arrival` is a Duration in nanoseconds; the hashes' block size, scope and tail, and the history, go to the
    file's metadata.
    """
    path = check_target(path, force=force)
    rows = trace.rows.drop(unknown_columns(trace)).with_columns(pl.col("arrival").cast(pl.Duration("ns")))
    metadata = {"history": json.dumps(trace.history)}
    if trace.block_size is not None:
        metadata |= {
            "block_size": str(trace.block_size),
            "hash_scope": trace.hash_scope,
            "hash_tail": trace.hash_tail,
        }
    write_whole(path, lambda file: rows.sink_parquet(file, metadata=metadata))


def write_whole(path: Path, write: Callable[[Path], Made]) -> Made:
    """Let `write` make the file, whole or not at all; what `write` returns. Raises `OutputError`."""
    try:
        return replace_file(path, write)
    except PolarsError as fault:
        raise OutputError(f"{path}: cannot be written ({first_line(fault)})") from fault


def unknown_columns(trace: Trace) -> list[str]:
    """The columns that say nothing: those that are null throughout, and ids that are the rows' numbers."""
    optional = [name for name, column in COLUMNS.items() if not column.required]
    known = trace.values(*(pl.col(name).is_not_null().any() for name in optional))
    numbers = trace.rows.select("request_id").with_row_index("number")
    numbered = (pl.col("request_id") == pl.col("number").cast(pl.String)).all()
    if numbers.select(numbered).collect(engine="streaming").item():
        known["request_id"] = False
    return [name for name in optional if not known[name]]

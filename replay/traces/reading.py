"""Reading a trace: a Parquet file, or a folder of them, to the canonical table.

It knows Parquet and the metadata that `writing` leaves; the meaning of the columns is `canonical`'s affair.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import PanicException, PolarsError

from replay.errors import TraceError
from replay.traces.canonical import canonical_trace
from replay.traces.faults import FILE, ROW, quoted
from replay.traces.scratch import AT_ONCE
from replay.traces.source import BROKEN, SKIP, Source, files_below, first_line
from replay.traces.table import HashScope, HashTail, Trace

HEAVY = 512 << 20  # bytes of columns, most of them prefix hashes or texts, that are not held in memory
HASH_SCOPES: tuple[HashScope, ...] = ("global", "session")
DIGITS = 10  # of a number of tokens
HASH_TAILS: tuple[HashTail, ...] = ("ceil", "floor")


def read_trace(path: str | Path) -> Trace:
    """Read and check a trace; raises `TraceError`, a sentence that names the file and, where it can, row and column."""
    path = Path(path)
    files = parquet_files(path)
    return canonical_trace(path.stem, path, [parquet_source(file) for file in files], sha256_of(files))


def parquet_files(path: Path) -> list[Path]:
    """The file itself, or the Parquet files of a folder in order of name."""
    refuse_name(path)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise TraceError(f"{path}: there is no such file or folder")
    files = files_below(path, "*.parquet")
    if not files:
        raise TraceError(f"{path}: the folder holds no Parquet file (*.parquet)")
    for file in files:
        refuse_name(file)
    return files


def refuse_name(file: Path) -> None:
    """Refuse a file whose name Polars cannot take; the sentence can be printed all the same."""
    try:
        str(file).encode()
    except UnicodeEncodeError as fault:
        shown = str(file).encode(errors="backslashreplace").decode()
        raise TraceError(f"{shown}: has a name that is not UTF-8; rename it") from fault


def parquet_source(file: Path) -> Source:
    """One Parquet file with its metadata, unchecked."""
    try:
        metadata = pl.read_parquet_metadata(file)
        rows = pl.scan_parquet(file, hive_partitioning=False)
        height, weight = extent(file)
        strange = [name for name in (FILE, ROW, BROKEN, SKIP) if name in rows.collect_schema()]
    except (PolarsError, pa.ArrowException, OSError, PanicException) as fault:
        raise no_parquet(file, fault) from fault
    scope = metadata.get("hash_scope", "global")
    if scope not in HASH_SCOPES:
        raise TraceError(f"{file}: the metadata's hash_scope is {scope!r}, but must be global or session")
    tail = metadata.get("hash_tail", "ceil")
    if tail not in HASH_TAILS:
        raise TraceError(f"{file}: the metadata's hash_tail is {tail!r}, but must be ceil or floor")
    return Source(
        path=file,
        rows=rows.drop(strange),
        log=False,
        large=height > AT_ONCE or weight > HEAVY,
        misread=lambda fault: no_parquet(file, fault),
        hash_tail=tail,
        block_size=block_size(metadata.get("block_size"), file),
        hash_scope=scope,
        notes=[f"columns left out: {', '.join(strange)}"] if strange else [],
        history=history(metadata.get("history")),
    )


def extent(file: Path) -> tuple[int, int]:
    """The rows of a Parquet file, and the bytes that its columns take when they are unpacked."""
    facts = pq.read_metadata(file)
    return facts.num_rows, sum(facts.row_group(group).total_byte_size for group in range(facts.num_row_groups))


def no_parquet(file: Path, fault: Exception) -> TraceError:
    """The sentence for a file that Polars cannot read."""
    return TraceError(
        f"{file}: cannot be read as Parquet ({first_line(fault)}); other formats are read by `replay trace import`"
    )


def block_size(text: str | None, file: Path) -> int | None:
    """The metadata's `block_size` as a number of tokens."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > DIGITS or int(text) < 1:
        right = "a number of tokens of at least 1"
        raise TraceError(f"{file}: the metadata's block_size is {quoted(text)}, but must be {right}")
    return int(text)


def history(text: str | None) -> list[str]:
    """The metadata's `history`; another program's entry of that name says nothing to us."""
    try:
        lines = json.loads(text or "[]")
    except json.JSONDecodeError:
        return []
    return [str(line) for line in lines] if isinstance(lines, list) else []


def sha256_of(files: Sequence[Path]) -> str:
    """SHA-256 of the bytes of these files, one after the other; raises `TraceError` if one cannot be read."""
    digest = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") as stream:
                while chunk := stream.read(1 << 20):
                    digest.update(chunk)
        except OSError as fault:
            raise TraceError(f"{file}: cannot be read ({fault.strerror})") from fault
    return digest.hexdigest()

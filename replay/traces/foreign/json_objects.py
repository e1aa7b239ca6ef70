"""Nested JSON of other people, object by object: one a line, one array of them, or one document.

It knows no format. Whoever asks gets plain Python values, a piece of the file at a time, and makes rows of them, which
`streamed` puts into a table of any length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import polars as pl
from polars.exceptions import PolarsError
from polars.io.plugins import register_io_source

from replay.errors import TraceError
from replay.traces.faults import ROW, place_text, quoted
from replay.traces.foreign.delimited import refuse_folder
from replay.traces.foreign.json_entry import Entry
from replay.traces.foreign.opening import TOO_DEEP, UNREADABLE, open_text
from replay.traces.source import BROKEN, Source, first_line, is_large
from replay.traces.table import SCHEMA

PIECE = 1 << 20  # characters that are read at a time
ROWS = 20_000  # that are put into a table at a time
BETWEEN = re.compile(r"[\s,]*")
Rows = Callable[[], Iterable[tuple[Any, ...]]]


def objects(file: Path, decoder: json.JSONDecoder | None = None) -> Iterator[Entry]:
    """The objects of a file, in order, fractions as decimals; raises `TraceError` for what is none, naming the row."""
    refuse_folder(file)
    try:
        with open_text(file) as stream:
            for row, value in values(file, stream, decoder or json.JSONDecoder(parse_float=Decimal)):
                if not isinstance(value, dict):
                    raise TraceError(f"{place_text(file, row)}: is not a JSON object")
                yield Entry(file, row, value)
    except UnicodeDecodeError as fault:
        raise TraceError(f"{file}: is not text in UTF-8, so it is not JSON") from fault
    except UNREADABLE as fault:
        raise TraceError(f"{file}: cannot be read ({first_line(fault)})") from fault


def first_names(file: Path) -> list[str]:
    """The names of the first object's fields; none where there is no object, which whoever reads it all will say."""
    try:
        return list(next(objects(file)).fields)
    except (StopIteration, TraceError):
        return []


def values(file: Path, stream: IO[str], decoder: json.JSONDecoder) -> Iterator[tuple[int, Any]]:
    """What the file holds: the elements of an array, or values, each on a line of its own or on many."""
    first = next((line for line in stream if line.strip()), "")
    start = first.lstrip()
    if start.startswith("["):
        yield from pieces(file, start[1:], stream, decoder, closing="]")
    elif start.startswith("{") and not is_whole(start, decoder):
        yield from pieces(file, start, stream, decoder, closing="")
    else:
        for row, line in enumerate(chain([first] if first else [], (line for line in stream if line.strip()))):
            try:
                yield row, decoder.decode(line)
            except ValueError as fault:
                raise TraceError(f"{place_text(file, row)}: is not JSON; each line must be one object") from fault
            except RecursionError as fault:
                raise TraceError(f"{place_text(file, row)}: {TOO_DEEP}") from fault


def is_whole(line: str, decoder: json.JSONDecoder) -> bool:
    """Whether a line is JSON by itself."""
    try:
        decoder.decode(line)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def pieces(
    file: Path, held: str, stream: IO[str], decoder: json.JSONDecoder, *, closing: str
) -> Iterator[tuple[int, Any]]:
    """Values one after the other, the first of which begin in `held`: in memory is no more than the longest needs."""
    row = at = 0
    while True:
        at = BETWEEN.match(held, at).end()  # type: ignore[union-attr]  # it matches nothing, too
        if closing and held.startswith(closing, at):
            return
        try:
            value, at = decoder.raw_decode(held, at)
        except ValueError as fault:
            more = stream.read(max(PIECE, len(held) - at))
            if not more and not closing and at == len(held):
                return
            if not more:
                raise TraceError(f"{place_text(file, row)}: is not JSON, or the file ends within it") from fault
            held, at = held[at:] + more, 0
            continue
        except RecursionError as fault:
            raise TraceError(f"{place_text(file, row)}: {TOO_DEEP}") from fault
        yield row, value
        row += 1


def row_schema(*names: str) -> dict[str, pl.DataType]:
    """The columns of rows that are made of objects: the row's number, its arrival, and these canonical ones."""
    return {ROW: pl.Int64(), "arrival_ns": pl.Int64()} | {name: SCHEMA[name] for name in names}


def table_of(path: Path, schema: Mapping[str, pl.DataType], rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Rows as a table of these columns, one of which is `ROW`; raises `TraceError` for a value that is beyond them."""
    try:
        columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
        return pl.DataFrame(dict(zip(schema, columns, strict=True)), schema=schema)
    except (UnicodeEncodeError, OverflowError, TypeError, PolarsError) as fault:
        for row in rows:
            for (name, dtype), value in zip(schema.items(), row, strict=True):
                if not holds(dtype, value):
                    right = "text in UTF-8" if dtype == pl.String else f"within {dtype}"
                    place = place_text(path, row[list(schema).index(ROW)], name)
                    raise TraceError(f"{place}: {quoted(value)}, but must be {right}") from fault
        raise


def holds(dtype: pl.DataType, value: Any) -> bool:
    """Whether a column of this type can have a value."""
    try:
        pl.Series([value], dtype=dtype)
    except (UnicodeEncodeError, OverflowError, TypeError, PolarsError):
        return False
    return True


def streamed(path: Path, schema: dict[str, pl.DataType], rows: Rows, **known: Any) -> Source:
    """The source of rows that are made one after the other, `schema` their columns; `known` is more of the `Source`.

    They are made when the trace is, once: what `rows` counts on its way into `skipped` and `notes` is there then.
    """
    failed: list[TraceError] = []

    def frames(
        wanted: list[str] | None, predicate: pl.Expr | None, limit: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        made = islice(rows(), limit)
        try:
            while batch := list(islice(made, ROWS)):
                frame = table_of(path, schema, batch)
                frame = frame.select(wanted) if wanted is not None else frame
                yield frame.filter(predicate) if predicate is not None else frame
        except TraceError as fault:
            failed.append(fault)
            raise

    def misread(fault: Exception) -> TraceError:
        return failed[0] if failed else TraceError(f"{path}: cannot be read ({first_line(fault)})")

    table = register_io_source(frames, schema=schema).with_columns(pl.lit(False).alias(BROKEN))
    large = path.is_file() and is_large(path)
    return Source(path, table, large=large, misread=misread, **known)

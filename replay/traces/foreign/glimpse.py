"""A first look at somebody's file: what kind it is, what its columns or keys are, and its first row.

Formats decide by it whether a file may be theirs. It reads no more than it must, and refuses nothing but what cannot
be read at all.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import polars as pl

from replay.errors import TraceError
from replay.traces.foreign.opening import UNREADABLE, open_text
from replay.traces.source import files_below

Kind = Literal["csv", "json lines", "json", "parquet", "folder", "other"]
PARQUET = b"PAR1"
ENOUGH = 1 << 16  # characters that show what most files are
LONGEST = 1 << 26  # characters of a line, or of a JSON object, that are looked at


@dataclass(frozen=True, slots=True)
class Glimpse:
    """`names` are the columns of a CSV or Parquet file, or the keys of the first object; of a folder its files' names.

    `first` is the first row (text, of a CSV) or object, `lines` tells whether more than one line was there, and
    `inside` is what a folder's first file looks like.
    """

    path: Path
    kind: Kind
    names: tuple[str, ...] = ()
    first: dict[str, Any] = field(default_factory=dict)
    lines: bool = False
    inside: Glimpse | None = None

    def has(self, *kinds: Kind, all_of: Collection[str], may: Collection[str] = ()) -> bool:
        """Whether the file is of one of these kinds, has all of these names, and no other but those it may have."""
        names = set(self.names)
        return self.kind in kinds and names >= set(all_of) and names <= {*all_of, *may}

    def includes(self, *kinds: Kind, all_of: Collection[str]) -> bool:
        """Whether the file is of one of these kinds and has all of these names, whatever else it has."""
        return self.kind in kinds and set(self.names) >= set(all_of)


def glimpse(path: Path) -> Glimpse:
    """A look at a file or folder; raises `TraceError` if there is none or it cannot be read."""
    if path.is_dir():
        files = files_below(path)
        inside = glimpse(files[0]) if files else None
        return Glimpse(path, "folder", tuple(str(file.relative_to(path)) for file in files), inside=inside)
    if not path.exists():
        raise TraceError(f"{path}: there is no such file")
    try:
        with path.open("rb") as stream:
            if stream.read(4) == PARQUET:
                return parquet(path)
        with open_text(path) as text:
            head = text.read(ENOUGH)
            if head.lstrip()[:1] in ("{", "["):
                return json_text(path, head, text)
    except UnicodeDecodeError:
        return Glimpse(path, "other")
    except UNREADABLE as fault:
        raise TraceError(f"{path}: cannot be read ({getattr(fault, 'strerror', None) or fault})") from fault
    return csv_text(path, head)


def parquet(path: Path) -> Glimpse:
    """A Parquet file's columns; the first row is not looked at."""
    try:
        return Glimpse(path, "parquet", tuple(pl.read_parquet_schema(path)))
    except (pl.exceptions.PolarsError, OSError):
        return Glimpse(path, "other")


def json_text(path: Path, head: str, text: IO[str]) -> Glimpse:
    """JSON Lines if the first line is an object of its own, else one document or array: its first object counts."""
    start = head.lstrip()
    array = start.startswith("[")
    start = start[1:].lstrip() if array else start
    found = first_value(start)
    if found is None and len(head) == ENOUGH:
        start += text.read(LONGEST)
        found = first_value(start)
    if found is None or not isinstance(found[0], dict):
        return Glimpse(path, "other")
    first, end = found
    rest = start[end:]
    lines = "\n" not in start[:end].strip() and not array and rest.lstrip(" \t\r")[:1] in ("\n", "")
    more = bool(rest.strip(" \t\r\n,]"))
    return Glimpse(path, "json lines" if lines else "json", tuple(first), first, lines=more)


def first_value(text: str) -> tuple[Any, int] | None:
    """The first JSON value of a text and where it ends; None if the text ends before it, or it is none."""
    try:
        return json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None


def csv_text(path: Path, head: str) -> Glimpse:
    """CSV: the header and the first row as text."""
    rows = [row for row in islice(csv.reader(head.splitlines()[:20]), 20) if row]
    if not rows:
        return Glimpse(path, "other")
    names = tuple(name.strip() for name in rows[0])
    return Glimpse(path, "csv", names, dict(zip(names, rows[1], strict=False)) if rows[1:] else {}, len(rows) > 2)

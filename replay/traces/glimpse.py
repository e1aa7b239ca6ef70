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
from typing import Any, Literal

import polars as pl

from replay.errors import TraceError
from replay.traces.opening import open_text

Kind = Literal["csv", "json lines", "json", "parquet", "folder", "other"]
PARQUET = b"PAR1"
LONGEST = 1 << 26  # characters of a line, or of a JSON document, that are looked at


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
        files = sorted(file for file in path.rglob("*") if file.is_file() and file.name[0] not in "._")
        inside = glimpse(files[0]) if files else None
        return Glimpse(path, "folder", tuple(str(file.relative_to(path)) for file in files), inside=inside)
    if not path.exists():
        raise TraceError(f"{path}: there is no such file")
    try:
        with path.open("rb") as stream:
            if stream.read(4) == PARQUET:
                return parquet(path)
        with open_text(path) as text:
            head = text.read(LONGEST)
    except OSError as fault:
        raise TraceError(f"{path}: cannot be read ({fault.strerror or fault})") from fault
    except (UnicodeDecodeError, EOFError):
        return Glimpse(path, "other")
    return json_text(path, head) if head.lstrip()[:1] in ("{", "[") else csv_text(path, head)


def parquet(path: Path) -> Glimpse:
    """A Parquet file's columns; the first row is not looked at."""
    try:
        return Glimpse(path, "parquet", tuple(pl.read_parquet_schema(path)))
    except (pl.exceptions.PolarsError, OSError):
        return Glimpse(path, "other")


def json_text(path: Path, head: str) -> Glimpse:
    """JSON Lines if the first line is an object of its own, else one document: its first object is looked at."""
    line, _, rest = head.lstrip().partition("\n")
    for kind, text in (("json lines", line), ("json", head)):
        try:
            entry = json.loads(text)
        except ValueError:
            continue
        if isinstance(entry, list) and entry:
            kind, entry = "json", entry[0]
        if isinstance(entry, dict):
            return Glimpse(path, kind, tuple(entry), entry, lines=bool(rest.strip()))  # type: ignore[arg-type]  # a Kind
    return Glimpse(path, "other")


def csv_text(path: Path, head: str) -> Glimpse:
    """CSV: the header and the first row as text."""
    rows = [row for row in islice(csv.reader(head.splitlines()[:20]), 20) if row]
    if not rows:
        return Glimpse(path, "other")
    names = tuple(name.strip() for name in rows[0])
    return Glimpse(path, "csv", names, dict(zip(names, rows[1], strict=False)) if rows[1:] else {}, len(rows) > 2)

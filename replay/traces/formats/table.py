"""Any table with a row for each request: CSV, JSON Lines, a JSON array, Parquet, or a folder of such files.

`--map OURS=THEIRS,...` says which columns hold what; columns that have our names already need no mapping, `OURS=`
leaves one out, and `usage.prompt_tokens` is a field within a field. A pair with a comma in it stands in double quotes:
`--map 'arrival_s=ts,"prompt_tokens=Tokens, in"'`.

Times are in the unit that OURS names: arrival_s, arrival_ms, arrival_us, arrival_ns, and likewise think_time_s and
deadline_s; `arrival=ts` is for instants in text (2023-11-16 18:15:46.6805900, with Z, +01:00 or none, which is UTC) and
for Parquet's own times. Text, CSV and JSON are read digit by digit, so that no time is rounded above the nanosecond.
CSV is UTF-8 text, packed or not.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from replay.errors import ExperimentError, TraceError
from replay.registry import nearest
from replay.traces.faults import ROW
from replay.traces.foreign.columnar import scan_columns
from replay.traces.foreign.delimited import scan_csv
from replay.traces.foreign.dotted import members, paths, written
from replay.traces.foreign.ended import TOOK, parse_took, started, took_field
from replay.traces.foreign.glimpse import Glimpse, glimpse
from replay.traces.foreign.json_objects import objects, streamed
from replay.traces.foreign.mapping import NEEDED, asked, field_of, is_arrival, matched, parse_map, parse_pairs
from replay.traces.foreign.opening import UNREADABLE, open_text
from replay.traces.formats import formats
from replay.traces.source import BROKEN, Raw, Source, files_below
from replay.traces.table import COLUMNS, HashScope, HashTail
from replay.traces.wording import listed

HASHES = dict.fromkeys(("hash_ids", "block_hashes", "total_hashes"), "prefix_hashes")  # as others name them
LOOKED = 1_000  # objects of a JSON file whose names are taken for those of all
AS_TEXT = json.JSONDecoder(parse_float=str, parse_int=str)
SEPARATORS = f"{string.punctuation} \t\x01\x1f".replace('"', "")


@formats.register("table")
@dataclass(frozen=True)
class Table:
    """Any CSV, JSON or Parquet file with a row for each request; --map names its columns"""

    map: str = field(default="", metadata={"help": "OURS=THEIRS,...: the file's columns; the same as --map"})
    keep: str = field(
        default="",
        metadata={"help": "COLUMN=VALUE,...: skip, and count, all other rows; status=200|201; error= for none"},
    )
    took: str = field(
        default="",
        metadata={"help": '"COLUMN UNIT": times are when requests ended, this long (s, ms, us, ns) after they came'},
    )
    null: str = field(default="", metadata={"help": 'texts that stand for nothing, such as "-,NULL", besides empty'})
    separator: str | None = field(default=None, metadata={"help": r'of a CSV; "," or, in a .tsv file, a tab'})
    header: str = field(default="", metadata={"help": "A,B,...: the columns of a CSV that has no header line"})
    block_size: int | None = field(
        default=None, metadata={"help": "tokens of a block of prefix_hashes", "minimum": 1, "maximum": 10**9}
    )
    hash_scope: HashScope = field(default="global", metadata={"help": "among whom hashes compare: global or session"})
    hash_tail: HashTail = field(
        default="ceil", metadata={"help": "whether a prompt's last, partial block has a hash (ceil) or not (floor)"}
    )

    def __post_init__(self) -> None:
        parse_map(self.map)
        parse_pairs(self.keep, "keep", "COLUMN=VALUE, such as status=200")
        parse_took(self.took)
        if self.separator is not None and (len(self.separator) != 1 or self.separator not in SEPARATORS):
            raise ExperimentError(f"separator: {self.separator!r} is not one character such as , ; | or a tab")

    @cached_property
    def mapping(self) -> dict[str, str]:
        return parse_map(self.map)

    @cached_property
    def kept(self) -> dict[str, list[str]]:
        """The values with which rows are kept, by column."""
        pairs = parse_pairs(self.keep, "keep", "COLUMN=VALUE")
        return {column: values.split("|") for column, values in pairs.items()}

    @cached_property
    def duration(self) -> tuple[str, str] | None:
        """The column that says how long requests took, and its unit."""
        return parse_took(self.took)

    @cached_property
    def wanted(self) -> list[str]:
        """The columns of the file that the settings name."""
        return [*filter(None, self.mapping.values()), *self.kept, *([self.duration[0]] if self.duration else [])]

    def fits(self, look: Glimpse) -> bool:
        names = set(look.names)
        return look.kind not in ("folder", "other") and names >= set(NEEDED) and any(map(is_arrival, names))

    def read(self, path: Path) -> list[Source]:
        files = [path]
        if path.is_dir():
            files = files_below(path)
            if not files:
                raise TraceError(f"{path}: the folder holds no file")
        return [self.source(file) for file in files]

    def source(self, file: Path) -> Source:
        """What one file holds."""
        raw = self.raw(file)
        chosen = matched(self.mapping, raw.names)
        if question := asked(chosen):
            raise TraceError(f"{file}: {question}; there are: {listed(self.offered(file, raw.names))}")
        if "prefix_hashes" in chosen and self.block_size is None:
            raise TraceError(f"{file}: how many tokens has a block of prefix_hashes? Say it as -o block_size=16")
        schema = raw.rows.collect_schema()
        try:
            fields = dict(field_of(ours, theirs, schema[theirs]) for ours, theirs in chosen.items())
            if self.duration:
                fields[TOOK] = took_field(*self.duration, schema)
        except TraceError as fault:
            raise TraceError(f"{file}: {fault}") from fault
        known = (
            *self.kept,
            *(name for name in raw.names if any(other.startswith(f"{name}.") for other in self.wanted)),
        )
        source = raw.source(
            fields,
            skips={f"{column} is not {' or '.join(values) or 'empty'}": other_than(column, values)
                   for column, values in self.kept.items()},
            known=known,
            block_size=self.block_size,
            hash_scope=self.hash_scope,
            hash_tail=self.hash_tail,
        )  # fmt: skip
        source.notes += meant(raw.names, chosen)
        return started(source) if self.duration else source

    def raw(self, file: Path) -> Raw:
        """The file's table, with the fields within fields that are wanted as columns of their own."""
        kind = glimpse(file).kind
        if kind == "parquet":
            return self.parquet(file)
        raw = self.json(file) if kind in ("json", "json lines") or begins_as_json(file) else self.csv(file)
        if not self.null:
            return raw
        nothing = self.null.split(",")
        text = pl.col(pl.String)
        rows = raw.rows.with_columns(pl.when(~text.str.strip_chars().is_in(nothing)).then(text))
        return replace(raw, rows=rows)

    def csv(self, file: Path) -> Raw:
        separator = self.separator or ("\t" if ".tsv" in file.suffixes else ",")
        header = tuple(name.strip() for name in self.header.split(",")) if self.header else None
        raw = scan_csv(file, header=header, separator=separator)
        other = next((mark for mark in ";\t|" if mark in raw.names[0]), None)
        if len(raw.names) == 1 and other:
            raise TraceError(f"{file}: has one column, {raw.names[0]!r}: is {other!r} its -o separator?")
        self.refuse_absent(file, raw.names)
        return raw

    def json(self, file: Path) -> Raw:
        seen = fields_in(file)
        self.refuse_absent(file, seen)
        names = [name for name in seen if name in self.wanted or "." not in name]
        read = list(dict.fromkeys([*matched(self.mapping, names).values(), *self.wanted]))

        def rows() -> Iterator[tuple[int | str | None, ...]]:
            for entry in objects(file, AS_TEXT):
                yield (entry.row, *(written(entry.fields, name) for name in read))

        source = streamed(file, {ROW: pl.Int64()} | dict.fromkeys(read, pl.String()), rows)
        assert source.misread is not None
        return Raw(file, source.rows.drop(BROKEN), names, source.large, source.misread)

    def parquet(self, file: Path) -> Raw:
        raw = scan_columns(file)
        there = dict(members(raw.rows.drop(ROW).collect_schema()))
        self.refuse_absent(file, there)
        inner = [name for name in dict.fromkeys(self.wanted) if name not in raw.names]
        rows = raw.rows.with_columns(there[name].alias(name) for name in inner)
        rows = rows.with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))  # which pandas writes for nothing
        return replace(raw, rows=rows, names=[*raw.names, *inner])

    def offered(self, file: Path, names: list[str]) -> list[str]:
        """What a mapping may name: of fields within fields the innermost."""
        found = list(fields_in(file)) if begins_as_json(file) else names
        return [name for name in found if not any(other.startswith(f"{name}.") for other in found)]

    def refuse_absent(self, file: Path, names: Any) -> None:
        """Refuse a file that has not all columns that the settings name."""
        for name in self.wanted:
            if name not in names:
                raise TraceError(f"{file}: there is no column {name!r}: {nearest(name, names)}")


def fields_in(file: Path) -> dict[str, None]:
    """The fields of a JSON file's first objects, with those within them, in order."""
    seen: dict[str, None] = {}
    for entry in islice(objects(file, AS_TEXT), LOOKED):
        seen |= dict.fromkeys(paths(entry.fields))
    return seen


def begins_as_json(file: Path) -> bool:
    """Whether a file that is none of JSON's kinds was meant to be, so that what is wrong in it can be said."""
    try:
        with open_text(file) as text:
            return text.read(64).lstrip()[:1] in ("{", "[")
    except (UnicodeDecodeError, *UNREADABLE):
        return False


def other_than(column: str, values: list[str]) -> pl.Expr:
    """Whether a row has none of these values; no text is an empty one."""
    return ~pl.col(column).cast(pl.String).str.strip_chars().fill_null("").is_in(values)


def meant(names: list[str], chosen: Mapping[str, str]) -> list[str]:
    """A remark on columns that nobody maps and whose names are nearly ours, if there are any."""
    left = {name: name.lower() for name in names if name not in chosen.values()}
    near = {name: HASHES.get(lower, lower.removesuffix("_id")) for name, lower in left.items()}
    hints = {name: ours for name, ours in near.items() if ours in COLUMNS and ours not in (*chosen, name)}
    pairs = ",".join(f"{ours}={name}" for name, ours in hints.items())
    size = " -o block_size=..." if "prefix_hashes" in hints.values() else ""
    return [f"left out, but perhaps meant: --map {pairs}{size}"] if hints else []

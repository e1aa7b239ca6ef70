"""JSON Lines with a time, two lengths and hash ids: the shape that Mooncake gave, and that other programs read too.

It knows neither their block sizes nor what their fields are called.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from replay.errors import TraceError
from replay.traces.foreign.delimited import Unit, elapsed
from replay.traces.foreign.export_lines import arrivals_in, block_remarks, with_hash_ids
from replay.traces.foreign.exporting import left_out
from replay.traces.foreign.json_entry import fields_left_out
from replay.traces.foreign.json_lines import given, scan_json_lines
from replay.traces.foreign.json_objects import first_names
from replay.traces.source import Field, Raw, Source
from replay.traces.table import HashTail, Trace
from replay.traces.wording import listed

HASHES = pl.List(pl.UInt64())  # some are 64 bits of a hash


@dataclass(frozen=True, slots=True)
class LengthLines:
    """What the fields are called, and the unit of the times. Hash ids need not be there."""

    time: str
    prompt: str
    output: str
    hashes: str
    unit: Unit

    @property
    def required(self) -> tuple[str, str, str]:
        return self.time, self.prompt, self.output

    def read(self, path: Path, *, block_size: int, hash_tail: HashTail) -> Source:
        """The rows; raises `TraceError` if the first object lacks a field."""
        there = first_names(path)
        refuse_without(path, there, self.required)
        whole = pl.Int64()
        fields = {
            self.time: pl.Float64(),
            self.prompt: whole,
            self.output: whole,
            self.hashes: HASHES,
        }
        raw = scan_json_lines(path, fields)
        source = as_written(raw, self.time).source(
            {
                "arrival_ns": time_field(self.time, self.unit),
                "prompt_tokens": given(self.prompt),
                "output_tokens": given(self.output),
                "prefix_hashes": given(self.hashes),
            },
            block_size=block_size,
            hash_tail=hash_tail,
        )
        source.notes += fields_left_out(there, fields)
        return source

    def write(self, trace: Trace, file: Path, block_size: int, tell: str, *, whole: bool, fill: bool) -> list[str]:
        """Write the trace, and say what of it is not there; `tell` is how a reader learns of blocks of another size."""
        times, remarks = arrivals_in(trace, self.unit, whole=whole)
        rows, more = with_hash_ids(trace, block_size, fill=fill)
        columns = {self.time: times, self.prompt: pl.col("prompt_tokens"), self.output: pl.col("output_tokens")}
        if trace.block_size is not None or fill:
            columns[self.hashes] = pl.col("prefix_hashes")
        rows.select(**columns).sink_ndjson(file)
        return [*remarks, *more, *block_remarks(trace, block_size, tell), *left_out(trace, "prefix_hashes")]


def as_written(raw: Raw, *numbers: str) -> Raw:
    """The same rows, numbers with a fraction as the shortest text that is the same number: what the file says."""
    return replace(raw, rows=raw.rows.with_columns(pl.col(numbers).cast(pl.String)))


def time_field(column: str, unit: Unit) -> Field:
    """Times `as_written`, digit by digit, for `arrival_ns`."""
    value = elapsed(column, unit).value
    return Field(column, pl.when(value >= 0).then(value), f"a number of 0 or more ({unit})")


def refuse_without(path: Path, there: list[str], names: tuple[str, ...]) -> None:
    """Refuse a file whose first object lacks one of these fields."""
    for name in names:
        if there and name not in there:
            raise TraceError(f"{path}: the field {name!r} is missing; there are: {listed(there)}")

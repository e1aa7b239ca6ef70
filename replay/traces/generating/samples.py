"""Values as another trace has them: what a specification draws from a file, and what is noted of that file.

The file is read while the specification is checked, so that a column that is not there is a fault of its key.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import PrivateAttr, ValidationInfo, model_validator

from replay.errors import ReplayError
from replay.registry import nearest
from replay.traces.generating.sections import Section
from replay.traces.generating.zipf import cumulated, picker
from replay.traces.reading import read_trace
from replay.traces.table import COLUMNS, Trace

NUMBERS = [name for name, column in COLUMNS.items() if column.kind in ("whole", "number")]
TURNS = "turns"  # of each session: counted, where other columns are read


@dataclass(slots=True)
class Traces:
    """The traces that a specification draws from, each read once; `folder` is where the specification lies."""

    folder: Path
    read: dict[str, Trace] = field(default_factory=dict)

    def open(self, name: str) -> Trace:
        """Raises ValueError, for the sentence that names the key."""
        if name not in self.read:
            try:
                self.read[name] = read_trace(self.folder / name)
            except ReplayError as fault:
                raise ValueError(str(fault)) from fault
        return self.read[name]

    def history(self) -> list[str]:
        """What is to be known of where values come from."""
        return [f"draws from {name} (sha256 {trace.sha256[:16]})" for name, trace in self.read.items()]


@dataclass(frozen=True, slots=True)
class Sample:
    """Values, or rows of values, and how often each was seen: the sum up to each."""

    values: list[Any]
    upto: list[float]

    def drawn_from(self, stream: random.Random) -> Callable[[], Any]:
        """A function that draws one."""
        pick = picker(self.upto, stream)
        return lambda: self.values[pick()]


def sample(rows: pl.LazyFrame, *columns: str) -> Sample:
    """How often each combination of values is there."""
    counts = rows.select(columns).drop_nulls().group_by(columns).agg(pl.len().alias("__seen"))
    found = counts.sort(columns).collect(engine="streaming")
    values = found[columns[0]].to_list() if len(columns) == 1 else found.select(columns).rows()
    return Sample(values, cumulated(found["__seen"]))


class Empirical(Section):
    """Values of a `column` of another `trace`, whose path counts from the specification's folder; `turns` are those of
    its sessions."""

    trace: str
    column: str
    _sample: Sample = PrivateAttr(default=Sample([], []))

    @model_validator(mode="after")
    def opened(self, info: ValidationInfo) -> Empirical:
        if self.column not in (TURNS, *NUMBERS):
            raise ValueError(
                f"there is no column of numbers {self.column!r}: {nearest(self.column, [TURNS, *NUMBERS])}"
            )
        rows = _traces(info).open(self.trace).rows
        if self.column == TURNS:
            rows = rows.drop_nulls("session").group_by("session").agg(pl.len().cast(pl.Int64).alias(TURNS))
        self._sample = sample(rows, self.column)
        if not self._sample.values:
            raise ValueError(f"{self.trace} says nothing of {self.column}")
        return self

    @property
    def sample(self) -> Sample:
        return self._sample


class Pairs(Section):
    """Prompt and output of one request of another `trace`, together as they were."""

    trace: str
    _sample: Sample = PrivateAttr(default=Sample([], []))

    @model_validator(mode="after")
    def opened(self, info: ValidationInfo) -> Pairs:
        self._sample = sample(_traces(info).open(self.trace).rows, "prompt_tokens", "output_tokens")
        return self

    @property
    def sample(self) -> Sample:
        return self._sample


def _traces(info: ValidationInfo) -> Traces:
    assert isinstance(info.context, Traces), "a specification is checked with the folder that its paths count from"
    return info.context

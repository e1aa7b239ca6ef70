"""How transforms are declared and applied: by name with one argument, in order, each with a record of what it changed.

A registered transform takes its argument as declared, checks it (`ExperimentError`), and gives back a function from
trace to trace, which raises `TraceError` for a trace that it cannot be applied to. What it adds to the trace's notes
becomes part of the record. It keeps the order of arrival and the first arrival at 0, asks only for what needs little
memory, and does the same to a trace in memory and to a scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import polars as pl

from replay.errors import ExperimentError, TraceError
from replay.registry import Registry
from replay.traces.scratch import AT_ONCE, Scratch
from replay.traces.table import Change, Trace
from replay.traces.wording import counted, toml_text

FEW = AT_ONCE  # rows that are held in memory, with lists and texts that take no more than the rest of so many
Transform = Callable[[Trace], Trace]
transforms: Registry[Callable[[object], Transform]] = Registry("transform")


@runtime_checkable
class ReadsFiles(Protocol):
    """A transform that reads other files."""

    def within(self, folder: Path) -> Transform:
        """The same, looking for its files in this folder first."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A transform of an experiment, its argument already checked."""

    name: str
    argument: object
    transform: Transform

    def __call__(self, trace: Trace) -> Trace:
        """The transformed trace, with this change added to its record."""
        before = trace.changes[-1].after if trace.changes else trace.extent()
        changed = self.transform(trace)
        after = changed.extent()
        if not after.rows:
            raise TraceError(
                f"{trace.path}: {self.name} = {toml_text(self.argument)} leaves no request of {before.rows:,}"
            )
        changed = at_hand(changed, after.rows)
        details = tuple(note for note in changed.notes if note not in trace.notes)
        notes = [note for note in changed.notes if note not in details]
        change = Change(self.name, self.argument, before, after, details)
        return replace(changed, notes=notes, changes=[*changed.changes, change])


def parse_transforms(entries: Iterable[object], folder: Path | None = None) -> list[Declared]:
    """An experiment's `transforms`, such as `[{"window": ["20m", "35m"]}, {"speed": 2.0}]`, checked.

    Files that they name are looked for in `folder` first. Raises `ExperimentError` for the first that is wrong; the
    caller says where it stood.
    """
    declared = []
    for entry in entries:
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise ExperimentError(f"{entry!r} is not one name with its argument, such as {{ speed = 2.0 }}")
        ((name, argument),) = entry.items()
        transform = transforms[str(name)](argument)
        if folder is not None and isinstance(transform, ReadsFiles):
            transform = transform.within(folder)
        declared.append(Declared(str(name), argument, transform))
    return declared


def apply_transforms(trace: Trace, declared: Sequence[Declared]) -> Trace:
    """The trace after all of them, in order; the trace given stays as it is."""
    for transform in declared:
        trace = transform(trace)
    return trace


def noted(trace: Trace, *notes: str) -> Trace:
    """The trace with something more to be said of it."""
    return replace(trace, notes=[*trace.notes, *notes])


def settled(trace: Trace) -> Trace:
    """The trace with its rows in a file if it is large: for rows that take long to compute, and are asked for again."""
    if not trace.large:
        return trace
    scratch = Scratch()
    return replace(trace, rows=scratch.spooled(trace.rows), scratch=scratch)


def at_hand(trace: Trace, rows: int) -> Trace:
    """The trace with its rows in memory, if a large one has become small."""
    if not trace.large or rows > FEW:
        return trace
    lists, text = pl.col("prefix_hashes", "prompt_token_ids").list.len().sum(), pl.col("prompt").str.len_bytes().sum()
    found = trace.values(lists, text)
    if found["prompt"] + 8 * (found["prefix_hashes"] + found["prompt_token_ids"]) > FEW * 200:
        return trace
    return replace(trace, rows=trace.rows.collect(engine="streaming").lazy(), large=False, scratch=None)


def from_zero(trace: Trace) -> Trace:
    """The trace with its first arrival at 0 again."""
    first = trace.values(pl.col("arrival").min())["arrival"]
    return trace.with_rows(trace.rows.with_columns(pl.col("arrival") - first)) if first else trace


def with_cut_sessions(before: Trace, after: Trace) -> Trace:
    """`after`, with a note on the sessions of which some requests were left out and others not."""
    if not before.values(any=pl.col("session").is_not_null().any())["any"]:
        return after
    were, are = (
        trace.rows.filter(pl.col("session").is_not_null()).group_by(session=pl.col("session").hash()).len()
        for trace in (before, after)
    )
    cut = are.join(were, on="session").filter(pl.col("len") < pl.col("len_right")).select(pl.len())
    sessions: int = cut.collect(engine="streaming").item()
    told = counted(sessions, "session goes", "sessions go")
    return noted(after, f"{told} on without some of the turns") if sessions else after

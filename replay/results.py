"""Reads a finished, interrupted or killed run back from its folder.

It knows files and columns; it computes nothing. A cell that was killed has only numbered part files: those are read,
and the cell is marked partial.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from replay.ceilings import Ceilings, ceilings_of
from replay.errors import OutputError
from replay.executors.work import Work
from replay.records_reader import first_line, read_table


@dataclass(frozen=True, slots=True)
class Goals:
    """What a good request keeps, in seconds; None where nothing was asked."""

    ttft: float | None = None
    tpot: float | None = None
    e2e: float | None = None
    reading: float | None = None  # tokens per second; for the quality of experience alone

    @property
    def any(self) -> bool:
        return any(goal is not None for goal in (self.ttft, self.tpot, self.e2e))


@dataclass(frozen=True, slots=True)
class Service:
    """What a token of each kind counts in the service that a user received, and how long a window of it is (None: it
    goes by the trace)."""

    prompt: float = 1.0
    output: float = 2.0
    window: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """What the manifest says of a trace: `rows` as replayed, and the rows that were left out, by reason."""

    name: str
    rows: int | None = None
    span_s: float | None = None
    path: str | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    history: Sequence[str] = ()  # what was done to it before it was written
    transforms: Sequence[Mapping[str, Any]] = ()
    sessions: Mapping[str, int] | None = None  # sessions, requests, with_gaps, at_once; None: it has none
    block_size: int | None = None  # tokens in a block of its prefix hashes; None where it has none
    shared_prompts: float | None = None  # share of its prompt tokens that an endless prefix cache would have
    origin: str = ""  # the name that its variants share; empty where it has none
    variant: Mapping[str, Any] = field(default_factory=dict)  # what this one is, such as {"load": 2.0}


@dataclass(frozen=True, slots=True)
class Cell:
    """One replay: where its tables lie, and what the manifest says of it."""

    name: str
    folder: Path
    trace: str
    mode: str
    policy: str
    variant: str = ""
    policy_variant: str = ""  # the end of it: settings of the policy's own
    repeat: int = 0
    simulated: bool = False
    padded: bool = False  # answers are delivered together, at the end of the batch
    status: str = "complete"
    error: str | None = None
    valid: bool = True
    invalid_reason: str | None = None
    lag_p99_ms: float | None = None
    blocks: int | None = None
    slots: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, float] | None = (
        None  # seconds of a step by the engine's cost model: fixed, prefill, decode, context
    )
    work: Work | None = None  # what FLOP and bytes of its steps are counted from
    ceilings: Ceilings | None = None  # of its device, as measured before the run
    device_use: Mapping[str, Any] | None = None  # memory and GPU use, as seen while it ran

    @property
    def named_policy(self) -> str:
        """The policy, with what was swept of its own settings."""
        return f"{self.policy} ({self.policy_variant})" if self.policy_variant else self.policy

    @property
    def rest(self) -> str:
        """What was swept besides: of the engine and the mode."""
        return self.variant.removesuffix(self.policy_variant).removesuffix(", ")

    @property
    def setting(self) -> str:
        """The mode, with what was swept of it and of the engine."""
        return f"{self.mode} ({self.rest})" if self.rest else self.mode

    @property
    def adapts(self) -> bool:
        """Whether its batch size is a rule, not a number."""
        return any(isinstance(value, Mapping) for value in (self.settings.get("mode") or {}).values())

    @property
    def price_per_hour(self) -> float | None:
        """What an hour of its engine costs, if that was given."""
        price: float | None = (self.settings.get("engine") or {}).get("price_per_hour")
        return price

    @property
    def recorded(self) -> bool:
        """Whether it left any request."""
        return bool(self.files("requests"))

    @property
    def partial(self) -> bool:
        """Whether it did not run to its end."""
        return self.status != "complete" or not (self.folder / "requests.parquet").is_file()

    def files(self, table: str) -> list[Path]:
        """The file of a table, or the parts of one that was never joined."""
        whole = self.folder / f"{table}.parquet"
        return [whole] if whole.is_file() else sorted(self.folder.glob(f"{table}.part-*.parquet"))

    def table(self, name: str) -> pl.DataFrame:
        """The rows of `requests`, `steps` or `spans`; none where nothing was written. OutputError as `read_table`."""
        return read_table(name, self.files(name))


@dataclass(frozen=True, slots=True)
class Run:
    """A run's manifest, typed, and its cells in the order of the manifest."""

    folder: Path
    name: str
    status: str
    cells: Sequence[Cell]
    traces: Sequence[Trace]
    goals: Goals
    manifest: Mapping[str, Any]
    length_bins: Sequence[int] | None = None
    service: Service = Service()

    @property
    def recorded(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.recorded]

    @property
    def partial(self) -> bool:
        return self.status not in ("complete", "failed") or any(cell.partial for cell in self.cells)

    def trace(self, name: str) -> Trace:
        return next((trace for trace in self.traces if trace.name == name), Trace(name))


def read_run(folder: Path) -> Run:
    """The run in `folder`; OutputError when there is none, or its manifest cannot be read."""
    path = folder / "manifest.json"
    if not path.is_file():
        raise OutputError(f"{folder}: not the folder of a run, for it holds no manifest.json")
    if not path.stat().st_size:
        raise OutputError(f"{path}: empty, so the run ended before its first cell began")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        cells = [_cell(folder, entry) for entry in manifest.get("cells", [])]
        names = [cell.name for cell in cells]
        if twice := [name for place, name in enumerate(names) if name in names[:place]]:
            raise ValueError(f"two cells are named {twice[0]!r}")
        traces = [_trace(entry) for entry in manifest.get("traces", [])]
        goals = {name: manifest.get("goals", {}).get(f"{name}_ms") for name in ("ttft", "tpot", "e2e")}
        return Run(
            folder=folder,
            name=manifest.get("name") or folder.name,
            status=manifest.get("status", "interrupted"),
            cells=cells,
            traces=traces,
            goals=Goals(
                **{name: None if goal is None else goal / 1000 for name, goal in goals.items()},
                reading=manifest.get("goals", {}).get("reading_tokens_per_s"),
            ),
            manifest=manifest,
            length_bins=manifest.get("length_bins"),
            service=_service(manifest.get("service") or {}),
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}: not the manifest of a run ({first_line(error)})") from error
    except KeyError as error:
        raise OutputError(f"{path}: a cell or trace lacks {error}") from error


def _cell(folder: Path, entry: Mapping[str, Any]) -> Cell:
    known = {name: entry[name] for name in Cell.__dataclass_fields__ if entry.get(name) is not None}
    read = {"work": Work.of, "ceilings": ceilings_of}
    known |= {name: make(known[name]) for name, make in read.items() if name in known}
    if not isinstance(known.get("settings", {}), Mapping):
        raise TypeError(f"the settings of {entry['cell']!r} are no table")
    return Cell(**{**known, "name": entry["cell"], "folder": folder / "cells" / entry["cell"]})


def _service(entry: Mapping[str, Any]) -> Service:
    known = Service()
    return Service(entry.get("prompt", known.prompt), entry.get("output", known.output), entry.get("window_s"))


def _trace(entry: Mapping[str, Any]) -> Trace:
    return Trace(**{name: entry[name] for name in Trace.__dataclass_fields__ if entry.get(name) is not None})

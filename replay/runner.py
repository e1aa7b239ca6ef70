"""Runs an experiment: every cell of its grid, one after the other, each into its own files.

A cell that fails does not take the grid with it, and a run that is stopped keeps what was measured. It draws nothing
and computes no metric but the lag that decides whether a cell is valid.
"""

from __future__ import annotations

import gc
import logging
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, Protocol

import polars as pl

from replay.clock import Clock, VirtualClock, WallClock
from replay.errors import ReplayError
from replay.executors.interface import Executor
from replay.executors.simulated import SimulatedExecutor
from replay.executors.torch import build_torch_executor
from replay.experiment.grid import Cell, cells, folder_name
from replay.experiment.loading import Experiment
from replay.experiment.settings import Engine
from replay.machine import hardware, versions
from replay.pool import KVPool
from replay.records import Records
from replay.records_writer import RecordsWriter
from replay.replayer import Progress, Replayer
from replay.run_folder import claim_folder, write_experiment, write_manifest
from replay.traces.reading import read_trace
from replay.traces.table import Trace
from replay.traces.transforms import apply_transforms
from replay.traces.workload import workload

FLUSH_SECONDS = 1.0  # rows reach the disk at least this often
MANIFEST_FORMAT = 1
WARM_ROWS, WARM_TOKENS, WARM_CONTEXT = 64, 512, 4096  # a warm-up looks no further: beyond, the cost model extrapolates

log = logging.getLogger(__name__)


class Observer(Protocol):
    """Whoever shows a run while it goes on."""

    def cell_started(self, number: int, total: int, cell: Cell) -> None: ...

    def progressed(self, progress: Progress) -> None: ...

    def cell_ended(self, cell: Cell, entry: dict[str, Any]) -> None: ...

    def remark(self, text: str) -> None: ...


@dataclass(slots=True)
class Run:
    """A run that has ended, or was stopped: where it lies, and its manifest."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def interrupted(self) -> bool:
        return bool(self.manifest["status"] == "interrupted")

    def failures(self) -> list[str]:
        """Why this run did not succeed: cells that failed, or that completed nothing."""
        sentences = []
        for entry in self.manifest["cells"]:
            if entry["status"] == "failed":
                sentences.append(f"{entry['cell']} failed: {entry['error']}")
            elif entry["status"] == "complete" and not entry["completed"]:
                sentences.append(f"{entry['cell']}: 0 of {entry['requests']} requests completed")
        return sentences

    def doubts(self) -> list[str]:
        """Why its figures may not be taken at face value: invalid cells, and requests that did not complete."""
        sentences = [f"{entry['cell']} is invalid: {entry['invalid_reason']}" for entry in self._ended("valid", False)]
        sentences += [
            f"{entry['cell']}: {entry['completed']} of {entry['requests']} requests completed"
            for entry in self._ended("status", "complete")
            if 0 < entry["completed"] < entry["requests"]
        ]
        return sentences

    def _ended(self, key: str, value: object) -> list[dict[str, Any]]:
        return [entry for entry in self.manifest["cells"] if entry.get(key) == value]


def open_traces(experiment: Experiment) -> list[Trace]:
    """The experiment's traces, validated and transformed. Raises TraceError when one cannot be replayed."""
    return [apply_transforms(read_trace(path), experiment.transforms) for path in experiment.traces]


class Runner:
    """One run of an experiment. Set `stop` (from a signal handler) to end it soon and keep what was measured."""

    def __init__(self, experiment: Experiment, traces: list[Trace], observer: Observer, stop: Event) -> None:
        self._experiment = experiment
        self._traces = traces
        self._observer = observer
        self._stop = stop
        self._executor: tuple[Engine, Executor] | None = None
        self.cells = cells(experiment, [folder_name(trace.name) for trace in traces])

    def run(self, output: Path | None = None) -> Run:
        """Replay every cell into `output` (or a new folder below `outputs/`)."""
        started = datetime.now(UTC)
        folder = claim_folder(output, folder_name(self._experiment.name), started.astimezone())
        manifest = self._manifest(started)
        self._prove(folder, manifest)
        write_experiment(folder, self._experiment.document)
        write_manifest(folder, manifest)
        for number, cell in enumerate(self.cells):
            if self._stop.is_set():
                break
            self._observer.cell_started(number + 1, len(self.cells), cell)
            entry = manifest["cells"][number]
            entry["status"] = "running"
            write_manifest(folder, manifest)
            self._run_cell(cell, entry, manifest, folder / "cells" / cell.name)
            write_manifest(folder, manifest)
            self._observer.cell_ended(cell, entry)
        manifest["status"] = self._status(manifest["cells"])
        manifest["ended"] = datetime.now(UTC).isoformat(timespec="seconds")
        write_manifest(folder, manifest)
        return Run(folder, manifest)

    def _prove(self, folder: Path, manifest: dict[str, Any]) -> None:
        """Build the first engine. One that cannot be built is the experiment's fault: no run is left behind."""
        try:
            self._engine(self.cells[0], manifest)
        except BaseException:
            folder.rmdir()
            raise

    def _run_cell(self, cell: Cell, entry: dict[str, Any], manifest: dict[str, Any], folder: Path) -> None:
        """One cell, whatever happens in it: its files are written and its entry says how it ended."""
        records = Records()
        writer = RecordsWriter(records, folder)
        replayer: Replayer | None = None
        try:
            executor, clock = self._engine(cell, manifest)
            requests = workload(self._traces[cell.trace], priority_order=self._experiment.priority_order)
            executor.prepare(requests)
            pool = KVPool(cell.engine.kv_blocks, cell.engine.block_size)
            if clock is None:
                gc.collect()
                gc.freeze()  # a collection in the middle of a cell would look at all of this again
                clock = WallClock(self._stop)
            entry["clock_zero_unix"] = clock.zero_unix
            entry["cost"] = asdict(executor.cost)
            replayer = Replayer(
                workload=requests,
                executor=executor,
                clock=clock,
                policy=self._experiment.make_policy(cell.policy),
                mode=self._experiment.make_mode(cell.mode),
                pool=pool,
                predictor=self._experiment.make_predictor(),
                records=records,
                limits=cell.engine.limits,
                seed=self._experiment.seed,
                stop=self._stop,
                watch=_Watch(writer, self._observer),
            )
            entry["status"] = "complete" if replayer.run() else "interrupted"
        except Exception as fault:  # whatever it is, the other cells go on and the run says that this one failed
            entry["status"] = "failed"
            entry["error"] = str(fault) if isinstance(fault, ReplayError) else f"{type(fault).__name__}: {fault}"
            log.debug("cell %s failed", cell.name, exc_info=fault)
            if replayer is not None:
                replayer.abandon(f"the cell failed: {entry['error']}")
        finally:
            gc.unfreeze()
            writer.close()
            entry.update(self._outcome(folder))

    def _engine(self, cell: Cell, manifest: dict[str, Any]) -> tuple[Executor, Clock | None]:
        """The executor of a cell, built and warmed up when its settings are new; and its clock, unless the wall's."""
        if cell.engine.kind == "simulated":
            clock = VirtualClock()
            simulated = SimulatedExecutor(cell.engine.cost.model(), clock)
            manifest["engines"] = [asdict(simulated.describe())]
            return simulated, clock
        if self._executor is None or self._executor[0] != cell.engine:
            self._executor = None  # let go of its memory first
            self._observer.remark(f"building the engine: {cell.engine.model}, {cell.engine.kv_blocks} KV blocks")
            executor = build_torch_executor(
                model=cell.engine.model,
                device=cell.engine.device,
                dtype=cell.engine.dtype,
                threads=cell.engine.threads,
                blocks=cell.engine.kv_blocks,
                block_size=cell.engine.block_size,
                seed=self._experiment.seed,
            )
            executor.warm_up(**self._shapes(cell.engine))
            manifest["engines"].append(asdict(executor.describe()))
            self._executor = (cell.engine, executor)
        return self._executor[1], None

    def _shapes(self, engine: Engine) -> dict[str, int]:
        """How large the steps to come are, at most: what a warm-up should have seen."""
        modes = [self._experiment.make_mode(cell.mode) for cell in self.cells if cell.engine == engine]
        longest = [
            trace.frame.select(
                prompt=pl.col("prompt_tokens").max(), whole=(pl.col("prompt_tokens") + pl.col("output_tokens")).max()
            ).row(0)
            for trace in self._traces
        ]
        return {
            "rows": min(WARM_ROWS, max(mode.slots for mode in modes)),
            "tokens": min(WARM_TOKENS, max(prompt for prompt, _ in longest)),
            "context": min(WARM_CONTEXT, max(whole for _, whole in longest), engine.kv_blocks * engine.block_size),
        }

    def _outcome(self, folder: Path) -> dict[str, Any]:
        """How many requests ended how, and whether arrivals were taken in on time: read back from the rows."""
        rows = pl.read_parquet(folder / "requests.parquet", columns=["status", "lag"])
        counts: dict[str, int] = dict(rows["status"].value_counts(sort=True).iter_rows())
        quantile = rows["lag"].quantile(0.99, interpolation="linear")
        lag = None if quantile is None else 1000 * quantile
        limit = self._experiment.lag_limit_ms
        reason = f"lag p99 is {lag:.1f} ms, over the limit of {limit:g} ms" if lag and lag > limit else None
        return {
            "statuses": dict(sorted(counts.items())),
            "completed": counts.get("completed", 0),
            "lag_p99_ms": lag,
            "valid": reason is None,
            "invalid_reason": reason,
        }

    def _status(self, entries: list[dict[str, Any]]) -> str:
        if self._stop.is_set():
            return "interrupted"
        return "failed" if all(entry["status"] == "failed" for entry in entries) else "complete"

    def _manifest(self, started: datetime) -> dict[str, Any]:
        experiment = self._experiment
        return {
            "format": MANIFEST_FORMAT,
            "name": experiment.name,
            "created": started.isoformat(timespec="seconds"),
            "status": "running",
            "versions": versions(),
            "hardware": hardware(),
            "priority_order": experiment.priority_order,
            "predictor": experiment.predictor.name,
            "predictor_options": experiment.predictor.settings,
            "goals": experiment.goals.model_dump(),
            "length_bins": experiment.length_bins,
            "lag_limit_ms": experiment.lag_limit_ms,
            "seed": experiment.seed,
            "repeats": experiment.repeats,
            "engines": [],
            "traces": [_trace_entry(trace) for trace in self._traces],
            "cells": [self._cell_entry(cell) for cell in self.cells],
        }

    def _cell_entry(self, cell: Cell) -> dict[str, Any]:
        mode = self._experiment.make_mode(cell.mode)
        return {
            "cell": cell.name,
            "trace": self._traces[cell.trace].name,
            "mode": cell.mode.name,
            "policy": cell.policy.name,
            "repeat": cell.repeat,
            "variant": cell.variant,
            "settings": cell.settings(),
            "simulated": cell.engine.kind == "simulated",
            "padded": mode.padded,
            "slots": mode.slots,
            "blocks": cell.engine.kv_blocks,
            "requests": self._traces[cell.trace].frame.height,
            "status": "pending",
            "error": None,
            "cost": None,  # seconds of a step as the engine's cost model has them: fitted at warm-up, or given
            "valid": None,
            "invalid_reason": None,
            "lag_p99_ms": None,
        }


class _Watch:
    """Called at every turn of the loop: hands rows to the writer now and then, and tells the observer.

    By the wall's time, whatever the cell's clock: it is the disk that it keeps up with.
    """

    def __init__(self, writer: RecordsWriter, observer: Observer) -> None:
        self._writer = writer
        self._observer = observer
        self._flushed = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._flushed >= FLUSH_SECONDS:
            self._writer.flush()
            self._flushed = now
        self._observer.progressed(progress)


def _trace_entry(trace: Trace) -> dict[str, Any]:
    extent = trace.extent()
    return {
        "name": trace.name,
        "path": str(trace.path),
        "sha256": trace.sha256,
        "rows": extent.rows,
        "span_s": extent.span,
        "prompt_tokens": extent.prompt_tokens,
        "output_tokens": extent.output_tokens,
        "skipped": trace.skipped,
        "notes": trace.notes,
        "history": trace.history,
        "transforms": [asdict(change) for change in trace.changes],
    }

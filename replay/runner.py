"""Runs an experiment: every cell of its grid, one after the other, each into its own files.

A cell that fails does not take the grid with it, and a run that is stopped keeps what was measured. It draws nothing
and computes no metric but the lag that decides whether a cell is valid.
"""

from __future__ import annotations

import gc
import logging
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from replay.block_keys import name_blocks
from replay.clock import WallClock
from replay.engines import Engines
from replay.errors import ReplayError, TraceError
from replay.experiment.grid import Cell, cells, folder_name
from replay.experiment.loading import Experiment
from replay.experiment.variants import vary
from replay.manifest import new_manifest
from replay.pool import KVPool
from replay.records import Records
from replay.records_writer import RecordsWriter
from replay.replayer import Progress, Replayer
from replay.run_folder import claim_folder, write_experiment, write_manifest
from replay.run_outcome import Run
from replay.stopping import Stop
from replay.traces.reading import read_trace
from replay.traces.table import Trace
from replay.traces.transforms import apply_transforms
from replay.traces.workload import workload

FLUSH_SECONDS = 1.0  # rows reach the disk at least this often

log = logging.getLogger(__name__)


class Observer(Protocol):
    """Whoever shows a run while it goes on."""

    def cell_started(self, number: int, total: int, cell: Cell) -> None: ...

    def progressed(self, progress: Progress) -> None: ...

    def cell_ended(self, cell: Cell, entry: dict[str, Any]) -> None: ...

    def remark(self, text: str) -> None: ...


def open_traces(experiment: Experiment) -> list[Trace]:
    """The experiment's traces, validated and transformed, each in all its variants.

    Raises TraceError: a line for each that cannot be.
    """
    opened: list[Trace] = []
    faults = []
    for path in experiment.traces:
        try:
            opened += vary(apply_transforms(read_trace(path), experiment.transforms), experiment.variants)
        except TraceError as fault:
            faults.append(str(fault))
    if faults:
        raise TraceError("\n".join(dict.fromkeys(faults)))
    return opened


class Runner:
    """One run of an experiment. Set `stop` (from a signal handler) to end it soon and keep what was measured.

    `folder` is where the run lies once it has begun.
    """

    def __init__(self, experiment: Experiment, traces: list[Trace], observer: Observer, stop: Stop) -> None:
        self._experiment = experiment
        self._traces = traces
        self._observer = observer
        self._stop = stop
        self.cells = cells(experiment, [folder_name(trace.name) for trace in traces])
        self._engines = Engines(experiment, traces, self.cells, observer.remark)
        self.folder: Path | None = None

    def run(self, output: Path | None = None) -> Run:
        """Replay every cell into `output` (or a new folder below `outputs/`)."""
        started = datetime.now(UTC)
        manifest = new_manifest(self._experiment, self._traces, self.cells, started)
        claim = None
        try:
            with self._stop.gently():
                claim = claim_folder(output, folder_name(self._experiment.name), started.astimezone())
            self._engines.of(self.cells[0])  # one that cannot be built is the experiment's fault: no run is left behind
        except BaseException:
            if claim is not None:
                claim.give_up()
            raise
        self.folder = claim.folder
        try:
            write_experiment(claim.folder, self._experiment.document)
            for number, cell in enumerate(self.cells):
                if self._stop.is_set():
                    break
                self._observer.cell_started(number + 1, len(self.cells), cell)
                self._run_cell(cell, manifest["cells"][number], manifest, claim.folder)
                self._observer.cell_ended(cell, manifest["cells"][number])
        finally:  # whatever ended it, the manifest says how far it came
            with self._stop.gently():
                manifest["status"] = self._status(manifest["cells"])
                manifest["ended"] = datetime.now(UTC).isoformat(timespec="seconds")
                write_manifest(claim.folder, manifest)
        return Run(claim.folder, manifest)

    def _run_cell(self, cell: Cell, entry: dict[str, Any], manifest: dict[str, Any], folder: Path) -> None:
        """One cell: its entry says how it ended. What fails in it, its own files apart, does not reach the others."""
        entry["status"] = "running"
        write_manifest(folder, manifest)
        try:
            self._replay(cell, entry, manifest, folder)
        except Exception as fault:  # whatever it is, the other cells go on and the run says that this one failed
            entry["status"] = "failed"
            entry["error"] = str(fault) if isinstance(fault, ReplayError) else f"{type(fault).__name__}: {fault}"
            log.debug("cell %s failed", cell.name, exc_info=fault)
            self._close_cell(entry, manifest, folder)

    def _close_cell(self, entry: dict[str, Any], manifest: dict[str, Any], folder: Path) -> None:
        """The manifest learns how a cell ended."""
        manifest["engines"] = [asdict(description) for description in self._engines.descriptions]
        entry.update(self._outcome(folder / "cells" / entry["cell"], entry["status"]))
        write_manifest(folder, manifest)

    def _replay(self, cell: Cell, entry: dict[str, Any], manifest: dict[str, Any], folder: Path) -> None:
        """Replay one cell into its three files, which are written whatever happens meanwhile."""
        executor, clock = self._engines.of(cell)
        requests = workload(self._traces[cell.trace], priority_order=self._experiment.priority_order)
        mode = self._experiment.make_mode(cell.mode)
        caches = cell.engine.prefix_cache and not mode.padded
        prompts = executor.prepare(requests)
        if caches:
            name_blocks(requests.requests, prompts, cell.engine.block_size)
        clock = clock or WallClock(self._stop)
        records = Records()
        writer = RecordsWriter(records, folder / "cells" / cell.name)
        entry["cost"] = asdict(executor.cost)
        entry.update(self._engines.account(cell))
        entry["blocks"], entry["host_blocks"] = executor.kv_blocks, executor.host_blocks
        write_manifest(folder, manifest)  # whatever ends the cell, its rows can be told with what is known by now
        replayer = Replayer(
            workload=requests,
            executor=executor,
            clock=clock,
            policy=self._experiment.make_policy(cell.policy),
            mode=mode,
            pool=KVPool(
                executor.kv_blocks,
                cell.engine.block_size,
                host_blocks=executor.host_blocks,
                prefix_cache=caches,
            ),
            predictor=self._experiment.make_predictor(),
            records=records,
            limits=cell.engine.limits,
            seed=self._experiment.seed,
            stop=self._stop,
            watch=_Watch(writer, self._observer),
            end_ids=executor.end_ids,
            open_loop=self._experiment.open_loop,
        )
        if clock.zero_unix is not None:
            gc.collect()
            gc.freeze()  # a collection in the middle of a replay would look at all of this again
        with self._stop.gently():
            try:
                with self._engines.watched(cell, entry):
                    entry["status"] = "complete" if replayer.run() else "interrupted"
            except BaseException as fault:
                replayer.abandon(f"the cell failed: {fault}")
                raise
            finally:
                entry["clock_zero_unix"] = clock.zero_unix
                gc.unfreeze()
                writer.close()
            self._close_cell(entry, manifest, folder)

    def _outcome(self, folder: Path, status: str) -> dict[str, Any]:
        """How many requests ended how, and whether arrivals were taken in on time: read back from the rows."""
        file = folder / "requests.parquet"
        if not file.is_file():
            return {"statuses": {}, "completed": 0}
        rows = pl.read_parquet(file, columns=["status", "lag"])
        counts: dict[str, int] = dict(rows["status"].value_counts(sort=True).iter_rows())
        quantile = rows["lag"].quantile(0.99, interpolation="linear")
        lag = None if quantile is None else 1000 * quantile
        limit = self._experiment.lag_limit_ms
        reason = f"lag p99 is {lag:.3g} ms, over the limit of {limit:g} ms" if lag and lag > limit else None
        return {
            "statuses": dict(sorted(counts.items())),
            "completed": counts.get("completed", 0),
            "lag_p99_ms": lag,
            "valid": None if status == "failed" else reason is None,
            "invalid_reason": reason,
        }

    def _status(self, entries: list[dict[str, Any]]) -> str:
        if any(entry["status"] in ("pending", "running", "interrupted") for entry in entries):
            return "interrupted"
        return "failed" if all(entry["status"] == "failed" for entry in entries) else "complete"


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

"""Makes a recipe's traces and experiments, runs them, and gathers what the claims are about.

All of it lies in one folder, as files that `replay trace generate` and `replay run` take: `WORKLOAD-seed-1.toml` and
`.parquet`, an experiment for each arm, and its run below `runs/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import tomli_w

from replay.errors import ReplayError
from replay.experiment.document import read_document
from replay.experiment.loading import load_experiment
from replay.metrics import measure
from replay.metrics.engine import BOUNDS
from replay.reproduce.arms import Arm
from replay.reproduce.document import Quantity, statistic_of
from replay.reproduce.recipe import ONLY, Recipe
from replay.results import read_run
from replay.runner import Observer, Runner, open_traces
from replay.stopping import Stop
from replay.traces.generate import generate_trace
from replay.traces.writing import write_trace


@dataclass(slots=True)
class Figures:
    """What was measured: of each arm, workload and seed, the summary of its cell."""

    seeds: Sequence[int]
    cost: dict[str, float] = field(default_factory=dict)
    _values: dict[tuple[Any, ...], float | None] = field(default_factory=dict)

    def keep(self, arm: str, workload: str, seed: int, summary: pl.DataFrame) -> None:
        columns = ("by", "group", "metric", "statistic", "value")
        for by, group, metric, statistic, value in summary.select(columns).iter_rows():
            self._values[arm, workload, seed, metric, statistic, by, group] = value

    def value(self, arm: str, workload: str, seed: int, quantity: Quantity) -> float | None:
        """None where it is not defined, or was not measured."""
        group = quantity.group if quantity.by != "all" else "all"
        place = (arm, workload, seed, quantity.metric, statistic_of(quantity), quantity.by, group)
        return self._values.get(place)

    def mean(self, arm: str, workload: str, quantity: Quantity) -> float | None:
        """Over the seeds; None where one of them has none."""
        found = [self.value(arm, workload, seed, quantity) for seed in self.seeds]
        known = [value for value in found if value is not None]
        return sum(known) / len(known) if known and len(known) == len(found) else None

    def bounds(self, arm: str, workload: str) -> dict[str, float]:
        """What share of the time of steps each thing was what somebody went without, the largest first."""
        shares = {
            name: self.mean(arm, workload, Quantity(metric=f"bound_by_{name}", statistic="value")) or 0.0
            for name in BOUNDS
        }
        return dict(sorted(shares.items(), key=lambda entry: -entry[1]))


class Stopped(Exception):
    """A recipe was stopped in the middle: there is no outcome."""


def lay_out(recipe: Recipe, folder: Path) -> dict[str, Path]:
    """Write the traces and an experiment for each arm into `folder`: the experiment files by arm."""
    folder.mkdir(parents=True, exist_ok=True)
    for (workload, seed), document in specifications(recipe).items():
        file = folder / f"{trace_name(workload, seed)}.toml"
        file.write_text(tomli_w.dumps(document), encoding="utf-8")
        write_trace(generate_trace(file), file.with_suffix(".parquet"))
    files = {}
    for arm in recipe.arms.values():
        files[arm.name] = folder / f"{arm.name}.toml"
        files[arm.name].write_text(tomli_w.dumps(experiment_of(recipe, arm)), encoding="utf-8")
    return files


def specifications(recipe: Recipe) -> dict[tuple[str, int], dict[str, Any]]:
    """What the trace generator is given, by workload and seed."""
    return {
        (workload, seed): {"seed": seed, **document}
        for workload, document in recipe.workloads.items()
        for seed in recipe.document.seeds
    }


def trace_name(workload: str, seed: int) -> str:
    return f"seed-{seed}" if workload == ONLY else f"{workload}-seed-{seed}"


def experiment_of(recipe: Recipe, arm: Arm) -> dict[str, Any]:
    """The experiment file of an arm."""
    places = specifications(recipe)
    traces = [f"{trace_name(workload, seed)}.parquet" for workload, seed in places if workload in arm.workloads]
    return {"name": f"{recipe.name}-{arm.name}", "traces": traces, **arm.document}


def run_recipe(recipe: Recipe, folder: Path, observer: Observer, stop: Stop) -> Figures:
    """Run every arm on every trace, below `folder`. Raises ReplayError when a cell fails, Stopped when stopped."""
    files = lay_out(recipe, folder)
    figures = Figures(recipe.document.seeds)
    for arm, file in files.items():
        experiment = load_experiment(read_document(file), str(file), folder)
        run = Runner(experiment, open_traces(experiment), observer, stop).run(folder / "runs" / arm)
        if run.interrupted:
            raise Stopped
        if failures := run.failures():
            raise ReplayError(f"{recipe.name}: {failures[0]}")
        figures.cost = dict(run.manifest["cells"][0]["cost"])
        summary = measure(read_run(run.folder)).summary
        for workload, seed in specifications(recipe):
            of_trace = summary.filter(pl.col("trace") == trace_name(workload, seed))
            figures.keep(arm, workload, seed, of_trace)
    return figures


def cells_of(recipe: Recipe) -> int:
    """How many replays it takes."""
    return sum(len(arm.workloads) for arm in recipe.arms.values()) * len(recipe.document.seeds)


def rows_of(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """The lines of its table: workload by workload, each arm."""
    for workload in recipe.workloads:
        yield from ((workload, arm.name) for arm in recipe.arms.values() if workload in arm.workloads)

"""A run as a whole: cells that fail and leave the others alone, folders that are nobody else's, books that add up."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from silent import Silent

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.errors import OutputError
from replay.experiment.grid import Cell
from replay.experiment.loading import Choice, Experiment, load_experiment
from replay.request import Request
from replay.run_folder import claim_folder
from replay.run_outcome import Run
from replay.runner import Runner, open_traces
from replay.scheduler import Ordered, Policy, Step
from replay.stopping import Stop


@dataclass
class Broken(Ordered):
    """Raises in one of its methods, at the tenth call; where it is called seldom, at the first."""

    where: str = "schedule"
    calls: int = 0

    def _count(self, where: str) -> None:
        if where != self.where:
            return
        self.calls += 1
        if self.calls >= (1 if where == "wake" else 10):
            raise RuntimeError(f"broken in {where}")

    def schedule(self, step: Step) -> None:
        self._count("schedule")
        super().schedule(step)

    def on_arrival(self, request: Request, step: Step) -> None:
        self._count("on_arrival")

    def on_admit(self, request: Request, step: Step) -> None:
        self._count("on_admit")

    def on_tokens(self, request: Request, tokens: int, new: int, seconds: float, step: Step) -> None:
        self._count("on_tokens")

    def on_finish(self, request: Request, step: Step) -> None:
        self._count("on_finish")

    def wake(self, now: float) -> float | None:
        self._count("wake")
        return None


@dataclass(slots=True, frozen=True)
class WithBroken(Experiment):
    """An experiment whose fifo is broken."""

    where: str = "schedule"

    def make_policy(self, choice: Choice) -> Policy:
        return Broken(self.where) if choice.name == "fifo" else Experiment.make_policy(self, choice)


def experiment(**document: Any) -> Experiment:
    simulated = {"traces": ["traces/sample.parquet"], "engine": {"kind": "simulated"}}
    return load_experiment({**simulated, **document}, "x.toml")


def run(what: Experiment, folder: Path) -> Run:
    return Runner(what, open_traces(what), Silent(), Stop()).run(folder)


@pytest.mark.parametrize("where", ["schedule", "on_arrival", "on_admit", "on_tokens", "on_finish", "wake"])
def test_a_cell_that_fails_leaves_the_others_alone_and_has_a_row_for_everybody(tmp_path: Path, where: str) -> None:
    good = experiment(policies={"fifo": {}, "sjf": {}}, modes={"dynamic": {}})
    broken = WithBroken(**{field.name: getattr(good, field.name) for field in fields(good)}, where=where)
    done = run(broken, tmp_path / "run")
    failed, complete = done.manifest["cells"]
    assert (failed["status"], failed["error"]) == ("failed", f"RuntimeError: broken in {where}")
    assert failed["valid"] is None
    assert sum(failed["statuses"].values()) == 96
    assert set(failed["statuses"]) <= {"completed", "unfinished"}
    assert (complete["status"], complete["completed"]) == ("complete", 96)
    assert done.manifest["status"] == "complete"
    assert json.loads((tmp_path / "run" / "manifest.json").read_text()) == done.manifest
    rows = pl.read_parquet(tmp_path / "run" / "cells" / failed["cell"] / "requests.parquet")
    assert rows["row"].to_list() == list(range(96))
    assert done.failures() == [f"dynamic-fifo failed: RuntimeError: broken in {where}"]


def test_a_run_that_is_stopped_between_cells_says_so(tmp_path: Path) -> None:
    what, stop = experiment(policies={"fifo": {}, "sjf": {}}), Stop()

    class StopsAfterOne(Silent):
        def cell_ended(self, cell: Cell, entry: dict[str, Any]) -> None:
            stop.set()

    done = Runner(what, open_traces(what), StopsAfterOne(), stop).run(tmp_path / "run")
    assert done.interrupted
    assert [entry["status"] for entry in done.manifest["cells"]] == ["complete", *["pending"] * 5]


def test_of_two_runs_that_ask_for_one_folder_one_gets_it(tmp_path: Path) -> None:
    outcomes: list[str] = []
    both = threading.Barrier(2)

    def claim() -> None:
        both.wait()
        try:
            outcomes.append(str(claim_folder(tmp_path / "run", "x", datetime(2026, 1, 2)).created))
        except OutputError as fault:
            outcomes.append(str(fault))

    threads = [threading.Thread(target=claim) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum("never overwrites another" in outcome for outcome in outcomes) == 1


def test_a_claim_that_is_given_up_leaves_the_place_as_it_was(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    claim_folder(mine, "x", datetime(2026, 1, 2)).give_up()
    assert mine.is_dir()
    assert not list(mine.iterdir())
    claim_folder(tmp_path / "new", "x", datetime(2026, 1, 2)).give_up()
    assert not (tmp_path / "new").exists()


def test_repeats_of_engines_with_long_names_get_a_cell_each() -> None:
    long = [f"{'folder/' * 40}{name}" for name in "ab"]
    what = experiment(repeats=2, engine={"kind": "simulated", "model": long}, modes={"static": {}})
    names = [cell.name for cell in Runner(what, open_traces(what), Silent(), Stop()).cells]
    assert len(set(names)) == len(names) == 20
    assert max(len(name.encode()) for name in names) < 200

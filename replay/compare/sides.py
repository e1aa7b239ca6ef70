"""The sides of a comparison: runs read from their folders, named apart, and measured by the same goals.

Cells of different runs may have one name, so each gets its run's number in front of it, as long as they are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from replay.errors import ExperimentError, OutputError
from replay.metrics import measure
from replay.metrics.arms import Values
from replay.results import Goals, Run, read_run


@dataclass(frozen=True, slots=True)
class Side:
    """A run, and what it is called among the others."""

    label: str
    run: Run

    @property
    def told(self) -> str:
        """What must be known of it before its figures: how it ended, and on which clock it ran."""
        recorded = self.run.recorded
        facts = [f"{len(recorded)} of {len(self.run.cells)} cells"]
        facts += [] if self.run.status == "complete" else [self.run.status]
        facts += ["partial"] if self.run.partial else []
        if recorded:
            simulated = sum(cell.simulated for cell in recorded)
            facts.append("simulated" if simulated == len(recorded) else "partly simulated" if simulated else "measured")
        created = self.run.manifest.get("created")
        return ", ".join([*dict.fromkeys(facts), *([f"started {created}"] if created else [])])


def read_sides(folders: Sequence[Path]) -> list[Side]:
    """The runs in these folders; ExperimentError when one is none, or is there twice."""
    seen: dict[Path, Path] = {}
    for folder in folders:
        if (place := folder.resolve()) in seen:
            raise ExperimentError(f"{folder}: the same run as {seen[place]}; a run is compared with another")
        seen[place] = folder
    runs = []
    for number, folder in enumerate(folders):
        try:
            if not folder.is_dir():
                raise ExperimentError(f"{folder}: there is no such folder; a run is a folder such as outputs/NAME")
            run = read_run(folder)
        except OutputError as fault:
            raise ExperimentError(str(fault)) from fault
        except OSError as fault:
            raise ExperimentError(f"{folder}: cannot be read ({fault.strerror or fault})") from fault
        if not run.cells:
            raise ExperimentError(f"{folder}: this run has no cells, so there is nothing to compare")
        runs.append(replace(run, cells=[replace(cell, name=f"{number}/{cell.name}") for cell in run.cells]))
    return [Side(label, run) for label, run in zip(_labels(folders), runs, strict=True)]


def _labels(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the folders' paths that tell them apart."""
    parts = [folder.resolve().parts for folder in folders]
    for length in range(1, max(map(len, parts)) + 1):
        labels = ["/".join(part[-length:]) for part in parts]
        if len(set(labels)) == len(labels):
            return labels
    return [str(folder) for folder in folders]


def judge_of(sides: Sequence[Side]) -> Side:
    """Whose goals every run is judged by: the first run's that has any."""
    return next((side for side in sides if side.run.goals.any), sides[0])


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of all sides, and their requests, cell by cell."""

    values: Values
    requests: pl.DataFrame


def measure_sides(sides: Sequence[Side]) -> Figures:
    """Every metric of every cell, by one set of goals and weights of service: figures by others are not comparable."""
    judge = judge_of(sides).run
    goals: Goals = judge.goals
    measured = [measure(replace(side.run, goals=goals, service=sides[0].run.service)) for side in sides]
    return Figures(
        Values(pl.concat([each.summary for each in measured])),
        pl.concat([each.requests for each in measured]),
    )

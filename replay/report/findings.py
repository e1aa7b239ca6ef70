"""All that a report is written from: the run, its numbers, and the comparisons of each trace, worked out once."""

from __future__ import annotations

from dataclasses import dataclass

from replay.metrics import Measured, measure
from replay.metrics.arms import Arm, Values, arms
from replay.metrics.contrasts import Contrasts, contrasts
from replay.results import Run


@dataclass(frozen=True, slots=True)
class Findings:
    """What is known of a run. `contrasts` are by trace."""

    run: Run
    measured: Measured
    arms: list[Arm]
    values: Values
    contrasts: dict[str, Contrasts]

    def of(self, trace: str) -> list[Arm]:
        return [arm for arm in self.arms if arm.trace == trace]

    @property
    def traces(self) -> list[str]:
        return list(self.contrasts)

    def count(self, status: str, arm: Arm) -> int:
        """Requests of an arm that ended so, over its repeats."""
        return round(sum(self.values.repeats(arm, status, "count")))

    def total(self, status: str) -> int:
        return sum(self.count(status, arm) for arm in self.arms)

    @property
    def simulated(self) -> bool:
        return any(cell.simulated for cell in self.run.cells)

    @property
    def repeated(self) -> bool:
        return any(len(arm.cells) > 1 for arm in self.arms)


def find(run: Run) -> Findings:
    """Measure a run and compare its arms. Bootstraps are seeded with the run's own seed."""
    measured, found = measure(run), arms(run)
    values = Values(measured.summary)
    seed = int(run.manifest.get("seed") or 0)
    by_trace = {
        trace: contrasts([arm for arm in found if arm.trace == trace], measured.requests, values, seed)
        for trace in dict.fromkeys(arm.trace for arm in found)
    }
    return Findings(run, measured, found, values, by_trace)

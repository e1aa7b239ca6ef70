"""All that a report is written from: the run, its numbers, and the comparisons of each trace, worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay.metrics import Measured, measure
from replay.metrics.arms import Arm, Values, arms, finished
from replay.metrics.asked import Asked
from replay.metrics.contrasts import Contrasts, contrasts
from replay.metrics.few import many
from replay.metrics.loads import chances
from replay.metrics.paired import PAIRED, Difference
from replay.metrics.pairing import CHANCE, Pairing, pairing
from replay.results import Run


@dataclass(frozen=True, slots=True)
class Findings:
    """What is known of a run. `contrasts` are by trace, and of the arms in `compared`: those that ran to their end."""

    run: Run
    measured: Measured
    arms: list[Arm]
    compared: list[Arm]
    values: Values
    contrasts: dict[str, Contrasts]
    pairings: dict[str, Pairing]

    def of(self, trace: str) -> list[Arm]:
        """The arms of a trace in the order of the tables: as they ran; of many policies, those of one setting by their
        mean end-to-end time."""
        found = [arm for arm in self.arms if arm.trace == trace]
        if not many(found):
            return found
        settings = list(dict.fromkeys(arm.setting for arm in found))
        times = {arm: self.values.value(arm, "e2e", "mean") for arm in found}
        return sorted(found, key=lambda arm: (settings.index(arm.setting), times[arm] is None, times[arm] or 0.0))

    def compared_of(self, trace: str) -> list[Arm]:
        return [arm for arm in self.compared if arm.trace == trace]

    @property
    def seed(self) -> int:
        """Of the bootstraps: the run's own."""
        return int(self.run.manifest.get("seed") or 0)

    def compare(self, metric: str, base: Arm, other: Arm) -> Difference:
        """The difference of two arms in one metric, by the rule that all claims follow."""
        return self.compare_all(metric, [(base, other)])[0]

    def compare_all(self, metric: str, pairs: Sequence[tuple[Arm, Arm]]) -> list[Difference]:
        """The differences of several pairs of one trace, of which one claim is made."""
        statistic = None if metric in PAIRED else "value"
        asked = [Asked(metric, *pair, statistic=statistic) for pair in pairs]
        return self.pairings[pairs[0][0].trace].family(asked) if pairs else []

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
    values, compared = Values(measured.summary), finished(found)
    findings = Findings(run, measured, found, compared, values, contrasts={}, pairings={})
    chance = chances(run.traces)
    for trace in dict.fromkeys(arm.trace for arm in found):
        own = findings.compared_of(trace)
        findings.pairings[trace] = pairing(measured.requests, values, own, findings.seed)
        findings.contrasts[trace] = contrasts(own, findings.pairings[trace], chance.get(trace, CHANCE))
    return findings

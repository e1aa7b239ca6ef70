"""Isolation: what some users cost the others, from a trace that was replayed with them and without them.

The same requests of everybody else came, as far from each other as ever; what differs is who came besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay.metrics.arms import Arm, Values
from replay.results import Trace

FIGURES = (("ttft", "p50"), ("ttft", "p99"), ("e2e", "p50"), ("e2e", "p99"))


@dataclass(frozen=True, slots=True)
class Isolated:
    """A figure of one user in an arm, in seconds: with the others in question, and without them."""

    arm: Arm
    user: str
    metric: str
    statistic: str
    beside: float | None
    alone: float | None

    @property
    def ratio(self) -> float | None:
        """How many times as long it takes with them; 1 where they cost nothing."""
        return self.beside / self.alone if self.beside is not None and self.alone else None


def without(trace: Trace, traces: Sequence[Trace]) -> Trace | None:
    """The variant of a trace that lacks some users and is the same in all else."""
    if "without" in trace.variant:
        return None
    for other in traces:
        rest = {name: fact for name, fact in other.variant.items() if name != "without"}
        if "without" in other.variant and other.origin == (trace.origin or trace.name) and rest == trace.variant:
            return other
    return None


def isolation(beside: Sequence[Arm], alone: Sequence[Arm], users: Sequence[str], values: Values) -> list[Isolated]:
    """Every figure of the users in the arms that were replayed both with and without the others."""
    known = {(arm.mode, arm.policy, arm.variant): arm for arm in alone}
    return [
        Isolated(
            arm,
            user,
            metric,
            statistic,
            values.value(arm, metric, statistic, "user", user),
            values.value(other, metric, statistic, "user", user),
        )
        for arm in beside
        if (other := known.get((arm.mode, arm.policy, arm.variant))) is not None
        for user in users
        for metric, statistic in FIGURES
    ]

"""Which arms are held against which: policies within a mode, modes within a policy, swept settings within both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from replay.metrics.arms import Arm, Values
from replay.metrics.paired import PAIRED, Difference, compare, compare_values
from replay.metrics.shifts import Shift, shifts

BASE_POLICY = "fifo"
QUEUEING = 0.05
"""Below this share there was no queue: of requests that waited for longer than a step, and of admitting steps that left
somebody waiting."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """`other` against `base`, in every metric that can be compared, by its name."""

    base: Arm
    other: Arm
    differences: dict[str, Difference]
    shifts: list[Shift]  # group by group; of policies only

    @property
    def name(self) -> str:
        """The other's policy, with the setting of its own that was swept."""
        own = ", ".join(part for part in self.other.variant.split(", ") if part not in self.base.variant.split(", "))
        return f"{self.other.policy} ({own})" if own else self.other.policy


@dataclass(frozen=True, slots=True)
class Contrasts:
    """All comparisons of one trace."""

    policies: list[Contrast]
    modes: list[Contrast]
    swept: list[list[Arm]]  # arms that differ only in a swept setting, the best first

    def seen(self, kind: Sequence[Contrast]) -> bool:
        return any(difference.seen for contrast in kind for difference in contrast.differences.values())


def contrasts(found: Sequence[Arm], requests: pl.DataFrame, values: Values, seed: int) -> Contrasts:
    """Every comparison among the arms of one trace."""

    def against(base: Arm, other: Arm) -> Contrast:
        differences = {metric: compare(requests, values, metric, base, other, seed) for metric in PAIRED}
        differences["output_throughput"] = compare_values(values, "output_throughput", "value", base, other)
        groups = shifts(requests, values, base, other, seed) if base.mode == other.mode else []
        return Contrast(base, other, differences, groups)

    policies = [against(base, arm) for base, arm in policy_pairs(found)]
    modes = []
    for family in _families(found, "policy"):
        modes += [against(base, other) for base, other in combinations(_one_a_mode(family, values), 2)]
    swept = [ranked(family, values) for family in _families(found, "mode", "policy") if len(family) > 1]
    return Contrasts(policies, modes, swept)


def policy_pairs(found: Sequence[Arm]) -> list[tuple[Arm, Arm]]:
    """Each arm of another policy with the arm that it is held against, mode by mode."""
    return [
        (base, arm)
        for family in _families(found, "mode")
        for arm in family
        if arm.policy != base_policy(family).policy and (base := _base_of(arm, family)) is not None
    ]


def base_policy(family: Iterable[Arm]) -> Arm:
    """The arm that the others are held against: fifo, or the first."""
    members = list(family)
    return next((arm for arm in members if arm.policy == BASE_POLICY), members[0])


def _base_of(arm: Arm, family: Sequence[Arm]) -> Arm | None:
    """The base policy's arm under the same settings: a setting of the policy itself may have been swept besides."""
    name, parts = base_policy(family).policy, _parts(arm)
    alike = [base for base in family if base.policy == name and _parts(base) <= parts]
    return max(alike, key=lambda base: len(_parts(base)), default=None)


def _parts(arm: Arm) -> set[str]:
    return set(arm.variant.split(", ")) - {""}


def ranked(family: Sequence[Arm], values: Values) -> list[Arm]:
    """Arms by goodput, then by output tokens per second, the best first; equal ones keep their order."""

    def merit(arm: Arm) -> tuple[float, float]:
        goodput = values.value(arm, "goodput", "value")
        throughput = values.value(arm, "output_throughput", "value")
        return (-1.0 if goodput is None else round(goodput, 4), -1.0 if throughput is None else throughput)

    return sorted(family, key=merit, reverse=True)


def queued(arm: Arm, values: Values) -> bool:
    """Whether a policy had a choice: often enough, somebody waited beyond the first step that could have admitted them,
    or was left waiting when others were admitted."""
    shares = (values.value(arm, metric, "value") for metric in ("queued", "left_waiting"))
    return any(share is not None and share >= QUEUEING for share in shares)


def _families(found: Sequence[Arm], *keys: str) -> list[list[Arm]]:
    families: dict[tuple[str, ...], list[Arm]] = {}
    for arm in found:
        families.setdefault(tuple(getattr(arm, key) for key in keys), []).append(arm)
    return list(families.values())


def _one_a_mode(family: Sequence[Arm], values: Values) -> list[Arm]:
    """One arm for each mode: of the variant that all modes share, or else the best of its own."""
    by_mode = _families(family, "mode")
    shared = set.intersection(*({arm.variant for arm in arms} for arms in by_mode))
    chosen = []
    for arms in by_mode:
        alike = [arm for arm in arms if arm.variant in shared]
        chosen.append((alike or ranked(arms, values))[0])
    return chosen

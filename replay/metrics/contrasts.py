"""Which arms are held against which: policies within a mode, modes within a policy, swept settings within both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from replay.metrics.arms import BASE_POLICY as BASE_POLICY
from replay.metrics.arms import Arm, Values
from replay.metrics.arms import base_policy as base_policy
from replay.metrics.asked import Asked
from replay.metrics.paired import PAIRED, Difference
from replay.metrics.pairing import CHANCE, Pairing
from replay.metrics.shifts import Shift, shifts

QUEUEING = 0.05
"""Below this share there was no queue: of requests that waited for longer than a step, and of admitting steps that left
somebody waiting."""


ONE_A_RUN = {"output_throughput": "value"}
"""Figures that are one number a run, and the statistic that they stand under."""


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


def contrasts(found: Sequence[Arm], pairing: Pairing, chance: float = CHANCE) -> Contrasts:
    """Every comparison among the arms of one trace. Those of policies, those of modes, and those of who gains and who
    pays are a family each: what is claimed of one is all true, but with this `chance`."""
    policies, values = policy_pairs(found), pairing.values
    groups = shifts(policies, pairing, chance)
    modes = [pair for family in _families(found, "policy") for pair in combinations(_one_a_mode(family, values), 2)]
    swept = [ranked(family, values) for family in _families(found, "mode", "policy") if len(family) > 1]
    told = zip(policies, differences(policies, pairing, chance), groups, strict=True)
    return Contrasts(
        [Contrast(*pair, each, moved) for pair, each, moved in told],
        [Contrast(*pair, each, []) for pair, each in zip(modes, differences(modes, pairing, chance), strict=True)],
        swept,
    )


def differences(pairs: Sequence[tuple[Arm, Arm]], pairing: Pairing, chance: float) -> list[dict[str, Difference]]:
    """Of each pair, every figure that is compared, by its name: all of them one family."""
    figures: dict[str, str | None] = {**dict.fromkeys(PAIRED), **ONE_A_RUN}
    asked = [Asked(name, *pair, statistic=statistic) for pair in pairs for name, statistic in figures.items()]
    found = pairing.family(asked, chance)
    each = [found[first : first + len(figures)] for first in range(0, len(found), len(figures))]
    return [dict(zip(figures, some, strict=True)) for some in each]


def policy_pairs(found: Sequence[Arm]) -> list[tuple[Arm, Arm]]:
    """Each arm of another policy with the arm that it is held against, mode by mode."""
    return [
        (base, arm)
        for family in _families(found, "mode")
        for arm in family
        if arm.policy != base_policy(family).policy and (base := _base_of(arm, family)) is not None
    ]


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

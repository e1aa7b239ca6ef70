"""What runs of the same cell differ by: the noise that no difference between two cells may be mistaken for.

It goes by the repeats of an arm and, for arms of a mode and setting that were not repeated, by the base policy's: a
cell that is only run a second time to measure this is an A/A cell. It knows no requests, only one figure a repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from replay.metrics.arms import Arm, base_policy

Key = tuple[str, ...]  # the names of an arm's cells: of runs side by side, arms may be called alike


@dataclass(frozen=True, slots=True)
class Noise:
    """Of one figure of an arm: how far two repeats lie apart at most, and the variance of its mean over the repeats,
    with the degrees of freedom that this rests on."""

    spread: float
    variance: float
    freedom: float


def noises(alike: Sequence[Sequence[Arm]], figures: Mapping[Key, Sequence[float]]) -> dict[Key, Noise]:
    """The noise of each arm, from the figures of its repeats; where no arm was repeated, nobody knows it.

    Arms that are `alike`, of one mode and setting, are as noisy as they are on average, and by no smaller a share of
    their figure than all arms of the machine; or noisier where their own repeats say so. So a variance rests on all
    repeats that there are, and is rather too large than too small.
    """
    everything = [_repeated(family, figures) for family in alike]
    known = [values for family in everything for values in family if sum(values)]
    freedom = sum(len(values) - 1 for values in known)
    if not freedom:
        known, freedom = [], sum(len(values) - 1 for family in everything for values in family)
    share = sum(_squares(values) / (sum(values) / len(values)) ** 2 for values in known) / max(freedom, 1)
    found: dict[Key, Noise] = {}
    for family, repeated in zip(alike, everything, strict=True):
        if not repeated:
            continue
        pooled = sum(map(_squares, repeated)) / sum(len(values) - 1 for values in repeated)
        base = base_policy(family).policy
        floor = max((_spread(figures.get(tuple(arm.names), ())) for arm in family if arm.policy == base), default=0.0)
        for arm in family:
            if values := figures.get(tuple(arm.names)):
                own = _squares(values) / (len(values) - 1) if len(values) > 1 else 0.0
                variance = max(own, pooled, share * (sum(values) / len(values)) ** 2)
                found[tuple(arm.names)] = Noise(max(floor, _spread(values)), variance / len(values), freedom)
    return found


def _repeated(family: Sequence[Arm], figures: Mapping[Key, Sequence[float]]) -> list[Sequence[float]]:
    """The figures of arms that were repeated."""
    known = (figures.get(tuple(arm.names), ()) for arm in family)
    return [values for values in known if len(values) > 1]


def _squares(values: Sequence[float]) -> float:
    """The sum of squares about the mean."""
    return float(np.var(values)) * len(values)


def by_setting(arms: Iterable[Arm]) -> list[list[Arm]]:
    """Arms that are alike but for their policy."""
    families: dict[tuple[str, str], list[Arm]] = {}
    for arm in arms:
        families.setdefault((arm.trace, arm.setting), []).append(arm)
    return list(families.values())


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values) if values else 0.0

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
    """The noise of each arm, from the figures of its repeats. Arms that are `alike`, of one mode and setting, are as
    noisy as they are on average, or noisier where their own repeats say so; where none was repeated, nobody knows.
    """
    found: dict[Key, Noise] = {}
    for family in alike:
        known = {tuple(arm.names): figures.get(tuple(arm.names), ()) for arm in family}
        repeated = {key: values for key, values in known.items() if len(values) > 1}
        freedom = sum(len(values) - 1 for values in repeated.values())
        if not freedom:
            continue
        pooled = sum(float(np.var(values)) * len(values) for values in repeated.values()) / freedom
        base = base_policy(family).policy
        floor = max((_spread(known[tuple(arm.names)]) for arm in family if arm.policy == base), default=0.0)
        for key, values in known.items():
            if values:
                own = float(np.var(values, ddof=1)) if len(values) > 1 else 0.0
                spread = max(floor, _spread(values))
                found[key] = Noise(spread, max(own, pooled) / len(values), freedom)
    return found


def by_setting(arms: Iterable[Arm]) -> list[list[Arm]]:
    """Arms that are alike but for their policy."""
    families: dict[tuple[str, str], list[Arm]] = {}
    for arm in arms:
        families.setdefault((arm.trace, arm.setting), []).append(arm)
    return list(families.values())


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values) if values else 0.0

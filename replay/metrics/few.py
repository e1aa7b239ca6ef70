"""The few of many policies that a picture can show and a sentence can name: the base, the best and the worst.

Colours cannot be told apart beyond eight. The tables have every policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay.metrics.arms import Arm, Values
from replay.metrics.contrasts import base_policy

MOST = 8
BEST = 4
"""Of the others, so many of the best are among them; the rest are of the worst."""
ALIKE = (("e2e", "mean"), ("ttft", "mean"), ("tpot", "mean"), ("output_throughput", "value"))
"""Policies that are the same in all of these are one in a picture."""


@dataclass(frozen=True, slots=True)
class Few:
    """The policies that are shown, in the order in which they were given, and what was left out; None if nothing."""

    policies: list[str]
    left_out: str | None = None


def many(found: Sequence[Arm]) -> bool:
    """Whether these are more policies than can be told apart."""
    return len({arm.policy for arm in found}) > MOST


def few(found: Sequence[Arm], values: Values) -> Few:
    """All policies where they are few; else fifo (or the first), those with the shortest mean end-to-end time, and
    those with the longest, in the first continuous setting (or the first), over all traces."""
    policies = list(dict.fromkeys(arm.policy for arm in found))
    if not many(found):
        return Few(policies)
    setting = next((arm.setting for arm in found if arm.mode == "continuous"), found[0].setting)
    base = base_policy(found).policy
    here = [arm for arm in found if arm.setting == setting]
    figures = {policy: _figures([arm for arm in here if arm.policy == policy], values) for policy in policies}
    taken = {figures[base]: base}  # of policies that are alike, the first: figures are exact on a virtual clock
    for policy in policies:
        taken.setdefault(figures[policy], policy)
    others = [(key[0], policy) for key, policy in taken.items() if policy != base and key[0] is not None]
    names = [policy for _, policy in sorted(others)]
    worst = MOST - 1 - BEST
    shown = {base, *(names if len(names) < MOST else names[:BEST] + names[-worst:])}
    said = f"{base}, the {BEST} best and the {worst} worst by mean end-to-end time in {setting}"
    if len(names) < MOST:
        said = f"of those that are alike in {setting}, one"
    elif len(taken) < len(policies):
        said += "; of those that are alike, one"
    return Few([policy for policy in policies if policy in shown], f"{len(shown)} of {len(policies)} policies: {said}")


def _figures(found: Sequence[Arm], values: Values) -> tuple[float | None, ...]:
    """Of a policy, over its traces."""
    return tuple(_mean([values.value(arm, *figure) for arm in found]) for figure in ALIKE)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None

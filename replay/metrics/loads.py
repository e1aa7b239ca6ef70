"""From which load on policies part: variants of one trace at several loads, and the first at which a difference is
claimed.

It goes by the claims that a report makes of each load, and makes none of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import polars as pl

from replay.metrics.arms import Arm, Values, finished
from replay.metrics.contrasts import Contrast, policy_pairs
from replay.metrics.paired import PAIRED, compare
from replay.results import Trace

Pair = TypeVar("Pair")


@dataclass(frozen=True, slots=True)
class Loads:
    """One trace at several loads: the traces' names by load factor, the lowest first."""

    name: str
    traces: Mapping[float, str]

    @property
    def factors(self) -> list[float]:
        return list(self.traces)


@dataclass(frozen=True, slots=True)
class Parting:
    """In one setting: who may be told from the base policy at each load factor, and the first at which anybody may."""

    setting: str
    apart: Mapping[float, Sequence[str]]

    @property
    def first(self) -> float | None:
        return next((factor for factor, policies in self.apart.items() if policies), None)


def loads_of(traces: Sequence[Trace]) -> list[Loads]:
    """The traces that were replayed at more than one load, whatever else was varied."""
    families: dict[str, dict[float, str]] = {}
    for trace in traces:
        if "load" in trace.variant:
            others = [f"{name} {fact}" for name, fact in trace.variant.items() if name != "load"]
            families.setdefault(" ".join([trace.origin, *others]), {})[float(trace.variant["load"])] = trace.name
    return [Loads(name, dict(sorted(found.items()))) for name, found in families.items() if len(found) > 1]


def parted(contrast: Contrast) -> bool:
    """Whether some paired difference may be claimed: throughput is none, for it is one number a run."""
    return any(contrast.differences[metric].seen for metric in PAIRED)


def partings(loads: Loads, policies: Mapping[str, Sequence[Contrast]]) -> list[Parting]:
    """Setting by setting, from the comparisons of policies that were made of each trace."""
    return _partings(loads, policies, lambda pair: (pair.base, pair.name), parted)


def find_partings(
    loads: Loads, arms: Sequence[Arm], requests: pl.DataFrame, values: Values, seed: int
) -> list[Parting]:
    """The same from arms and rows, where no comparisons were made yet."""
    pairs = {
        trace: policy_pairs(finished([arm for arm in arms if arm.trace == trace])) for trace in loads.traces.values()
    }

    def apart(pair: tuple[Arm, Arm]) -> bool:
        return any(compare(requests, values, metric, *pair, seed).seen for metric in PAIRED)

    return _partings(loads, pairs, lambda pair: (pair[0], pair[1].policy), apart)


def _partings(
    loads: Loads,
    pairs: Mapping[str, Sequence[Pair]],
    named: Callable[[Pair], tuple[Arm, str]],
    apart: Callable[[Pair], bool],
) -> list[Parting]:
    found: dict[str, dict[float, list[str]]] = {}
    for factor, trace in loads.traces.items():
        for pair in pairs.get(trace, ()):
            base, name = named(pair)
            policies = found.setdefault(base.setting, {each: [] for each in loads.factors})[factor]
            if apart(pair):
                policies.append(name)
    return [Parting(setting, policies) for setting, policies in found.items()]

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
from replay.metrics.contrasts import Contrast, differences, policy_pairs
from replay.metrics.paired import PAIRED, Difference
from replay.metrics.pairing import CHANCE, pairing
from replay.results import Trace

Pair = TypeVar("Pair")
Parted = tuple[Arm, Arm, dict[str, Difference]]


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

    @property
    def words(self) -> str:
        """`policies part from 2x on`."""
        return "policies cannot be told apart" if self.first is None else f"policies part from {self.first:g}x on"


def loads_of(traces: Sequence[Trace]) -> list[Loads]:
    """The traces that were replayed at more than one load, whatever else was varied."""
    families: dict[str, dict[float, str]] = {}
    for trace in traces:
        if "load" in trace.variant:
            others = [f"{name} {fact}" for name, fact in trace.variant.items() if name != "load"]
            families.setdefault(" ".join([trace.origin, *others]), {})[float(trace.variant["load"])] = trace.name
    return [Loads(name, dict(sorted(found.items()))) for name, found in families.items() if len(found) > 1]


def loads_from(traces: Sequence[Trace], lowest: str) -> Loads | None:
    """The loads of which this trace is the lowest: a picture of them all is drawn once, with it."""
    return next((loads for loads in loads_of(traces) if next(iter(loads.traces.values())) == lowest), None)


def parted(contrast: Contrast) -> bool:
    """Whether some paired difference may be claimed: throughput is none, for it is one number a run."""
    return _seen(contrast.differences)


def _seen(differences: Mapping[str, Difference]) -> bool:
    return any(differences[metric].seen for metric in PAIRED)


def partings(loads: Loads, policies: Mapping[str, Sequence[Contrast]]) -> list[Parting]:
    """Setting by setting, from the comparisons of policies that were made of each trace."""
    return _partings(loads, policies, lambda pair: (pair.base, pair.name), parted)


def find_partings(
    loads: Loads, arms: Sequence[Arm], requests: pl.DataFrame, values: Values, seed: int
) -> list[Parting]:
    """The same from arms and rows, where no comparisons were made yet."""
    pairs: dict[str, list[Parted]] = {}
    for trace in loads.traces.values():
        found = finished([arm for arm in arms if arm.trace == trace])
        asked = policy_pairs(found)
        told = differences(asked, pairing(requests, values, found, seed), CHANCE / len(loads.traces))
        pairs[trace] = [(base, other, each) for (base, other), each in zip(asked, told, strict=True)]
    return _partings(loads, pairs, lambda pair: (pair[0], pair[1].policy), lambda pair: _seen(pair[2]))


def chances(traces: Sequence[Trace]) -> dict[str, float]:
    """The chance of a false claim that each trace is given. From which load on policies part is read off all loads of
    a trace, so they share the chance (C. E. Bonferroni's rule: nothing is known of how loads hang together)."""
    found = dict.fromkeys((trace.name for trace in traces), CHANCE)
    for loads in loads_of(traces):
        found |= dict.fromkeys(loads.traces.values(), CHANCE / len(loads.traces))
    return found


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

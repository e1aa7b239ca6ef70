"""What a piece of advice is: a pitfall, looked for in one arm after the other, and the cases in which it was found.

A pitfall is a function that is silent (None) where evidence is weak. Its docstring says what it looks at; together with
from when on it speaks and what it recommends, it is a row of docs/advice.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.metrics.arms import Arm
from replay.registry import Registry
from replay.report.findings import Findings

LEAST_REQUESTS = 20
"""Of fewer requests, a twentieth is not even one: nothing is advised from them."""


@dataclass(frozen=True, slots=True)
class Case:
    """A pitfall as one arm fell into it. `settings` are what to try, by their key in an experiment."""

    figure: float  # what tells how bad it is, and is told of the other arms too
    cost: float  # 0 to 1: the share of the requests, or of the engine's time, that is lost to it
    what: str  # a clause: what is wrong, and where
    why: str  # a sentence: what it costs
    settings: Mapping[str, Any]
    remedy: str  # what the settings should bring, and at what price


Search = Callable[[Arm, Findings], Case | None]


@dataclass(frozen=True, slots=True)
class Pitfall:
    """An entry of the registry."""

    name: str
    title: str
    looks_at: str
    speaks: str
    remedy: str
    figure: str  # what the figure counts
    write: Callable[[float], str]
    search: Search


@dataclass(frozen=True, slots=True)
class Advice:
    """A pitfall with all arms that fell into it, the one that it costs most first."""

    pitfall: Pitfall
    cases: list[tuple[Arm, Case]] = field(repr=False)
    cost: float  # of all arms of the run, those that it spares included

    @property
    def arms(self) -> list[Arm]:
        return [arm for arm, _ in self.cases]

    @property
    def worst(self) -> Case:
        return self.cases[0][1]


pitfalls: Registry[Pitfall] = Registry("pitfall")


def pitfall(
    name: str, title: str, *, speaks: str, remedy: str, figure: str, write: Callable[[float], str]
) -> Callable[[Search], Search]:
    """Register a function that looks for a pitfall in one arm."""

    def keep(search: Search) -> Search:
        looks_at = " ".join((search.__doc__ or "").split())
        pitfalls.register(name)(Pitfall(name, title, looks_at, speaks, remedy, figure, write, search))
        return search

    return keep


def advise(findings: Findings) -> list[Advice]:
    """What there is to advise, the costliest first. Only arms that are valid and ran to their end are asked."""
    arms = [arm for arm in findings.compared if not arm.mark]
    found = []
    for name in pitfalls:
        cases = [(arm, case) for arm in arms if (case := pitfalls[name].search(arm, findings)) is not None]
        if cases:
            cost = sum(case.cost for _, case in cases) / len(arms)
            ordered = sorted(cases, key=lambda pair: -pair[1].cost)
            found.append(Advice(pitfalls[name], ordered, cost))
    return sorted(found, key=lambda advice: -advice.cost)

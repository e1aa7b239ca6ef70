"""Whether a difference between runs is seen, figure by figure and cell by cell, by the rule of the report's claims.

All runs replayed the same requests, so they are held against each other request by request. What stands in one table is
one family: its intervals hold together. A figure that is one number a run has no requests to draw from: then only
repeats can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from replay.compare.figures import Figure
from replay.compare.matching import Place
from replay.compare.sides import Figures
from replay.metrics.aligned import Aligned
from replay.metrics.arms import Arm
from replay.metrics.asked import Asked
from replay.metrics.noise import by_setting
from replay.metrics.paired import Bounds, Difference
from replay.metrics.pairing import CHANCE, Pairing
from replay.metrics.percentiles import BEYOND, enough

Verdict = Literal["seen", "not seen", "cannot be told"]


@dataclass(frozen=True, slots=True)
class Sight:
    """A verdict; why it could not be told; the interval of the paired difference and the requests that it rests on.

    `low` and `high` hold together with those of all `comparisons` of the table; `uncorrected` is what the interval
    would be alone.
    """

    verdict: Verdict
    why: str | None = None
    low: float | None = None
    high: float | None = None
    pairs: int | None = None
    uncorrected: Bounds | None = None
    comparisons: int | None = None

    @property
    def mark(self) -> str:
        return {"seen": "*", "not seen": "", "cannot be told": "?"}[self.verdict]


@dataclass(frozen=True, slots=True)
class Versus:
    """Two places that are held against each other in one figure."""

    figure: Figure
    base: Place
    other: Place


def sights(asked: Sequence[Versus], peers: Sequence[Sequence[Arm]], figures: Figures, seed: int) -> list[Sight]:
    """Whether `other` may be said to differ from `base`, of everything that stands in one table. `peers` are the arms
    of each run. Traces have no rows in common, so they share the chance of a false claim."""
    early = [_before(each, figures) for each in asked]
    open_ones = [place for place, sight in enumerate(early) if sight is None]
    by_trace: dict[str, list[int]] = {}
    for place in open_ones:
        arm = asked[place].base.arm
        assert arm is not None, "it could be told"
        by_trace.setdefault(arm.trace, []).append(place)
    found = dict(enumerate(early))
    for places in by_trace.values():
        arms = [asked[place] for place in places]
        family = _pairing(arms, peers, figures, seed).family([_asked(each) for each in arms], CHANCE / len(by_trace))
        for place, difference in zip(places, family, strict=True):
            found[place] = _decided(asked[place], difference)
    return [sight for sight in found.values() if sight is not None]


def _before(versus: Versus, figures: Figures) -> Sight | None:
    """What can be said without any interval; None: it takes one."""
    base, other, figure = versus.base.arm, versus.other.arm, versus.figure
    if base is None or other is None or versus.base.doubt or versus.other.doubt:
        return Sight("cannot be told", "a cell is invalid, partial or missing")
    repeats = [figures.values.repeats(arm, figure.metric, figure.statistic) for arm in (base, other)]
    if not all(repeats):
        return Sight("cannot be told", "it is not defined")
    if not _by_mean(figure) and repeats[0] == repeats[1]:
        return Sight("not seen")
    return None


def _by_mean(figure: Figure) -> bool:
    """Whether it is a mean over requests."""
    return figure.metric == "goodput" or (figure.statistic == "mean" and figure.of_requests)


def _asked(versus: Versus) -> Asked:
    base, other, figure = versus.base.arm, versus.other.arm, versus.figure
    assert base is not None
    assert other is not None
    if _by_mean(figure):
        return Asked("good" if figure.metric == "goodput" else figure.metric, base, other)
    percent = figure.percent if figure.of_requests else None
    return Asked(figure.metric, base, other, statistic=figure.statistic, percent=percent)


def _pairing(asked: Sequence[Versus], peers: Sequence[Sequence[Arm]], figures: Figures, seed: int) -> Pairing:
    """Of the requests of these cells. Arms are as noisy as those of their own run."""
    names = {name for each in asked for place in (each.base, each.other) if place.arm for name in place.arm.names}
    aligned = Aligned(figures.requests.filter(pl.col("cell").is_in(list(names))), seed)
    here = [[arm for arm in arms if names.issuperset(arm.names)] for arms in peers]
    return Pairing(aligned, figures.values, [by_setting(arms) for arms in here])


def _decided(versus: Versus, found: Difference) -> Sight:
    """By the interval, if there is one, and by how far repeats lie apart."""
    figure, pairs = versus.figure, None if _one_a_run(versus.figure) else found.pairs
    if figure.percent is not None and figure.of_requests and not enough(found.pairs, figure.percent / 100):
        return Sight("cannot be told", f"fewer than {BEYOND} requests lie beyond it", pairs=pairs)
    facts = (found.low, found.high, pairs, found.uncorrected, found.comparisons)
    if not found.difference:
        return Sight("not seen", None, *facts)
    if found.low is None and found.noise is None:
        why = "too few requests" if pairs is not None else "it is one number a run, and the runs were not repeated"
        return Sight("cannot be told", why, pairs=pairs)
    return Sight("seen" if found.apparent else "not seen", None, *facts)


def _one_a_run(figure: Figure) -> bool:
    return not _by_mean(figure) and not (figure.percent is not None and figure.of_requests)

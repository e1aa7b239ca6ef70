"""Arrivals by gaps: renewal processes over a rate that may change, and one client's windows of rate and burstiness.

It knows nothing of a specification; whoever has measured a client's windows can have its arrivals from here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from replay.traces.generating.gaps import FAMILIES, NARROWEST, FamilyName
from replay.traces.generating.rates import Piece, crossings
from replay.traces.generating.sections import TICK


@dataclass(frozen=True, slots=True)
class Window:
    """`lasts` nanoseconds of a client: requests a second, and the coefficient of variation of the gaps.

    Without requests, or without a known `variation`, gaps are as of Poisson arrivals.
    """

    lasts: int
    requests_per_second: float
    variation: float | None = None
    gaps: FamilyName = "gamma"

    @property
    def piece(self) -> Piece:
        variation = 1.0 if self.variation is None else max(self.variation, NARROWEST)
        return Piece(self.lasts, self.requests_per_second, family=FAMILIES[self.gaps](variation))


def window_arrivals(windows: Iterable[Window], stream: random.Random, begin: int = 0) -> Iterator[int]:
    """Nanoseconds at which a client's requests arrive, whose windows follow each other from `begin` on.

    The client was there before: its first gap has begun already, so that each window has as many requests as its rate
    says, on average, however bursty they are. A gap goes on from one window into the next at the next one's rate.
    """
    pieces = (window.piece for window in windows if window.lasts > 0)
    for time in crossings(pieces, begin, renewal(stream, stationary=True)):
        yield ticked(time)


def renewal(stream: random.Random, *, stationary: bool) -> Callable[[Piece, float], float]:
    """Gap after gap, of the family of the piece in which it begins; if `stationary`, the first is the rest of one."""

    def following(piece: Piece, wanted: float) -> float:
        family = piece.family
        assert family is not None, "the pieces of a rate say how gaps are distributed"
        if stationary and wanted == 0:
            return family.rest(stream, 1 / family.mean)
        return wanted + family.gap(stream, 1 / family.mean)

    return following


def ticked(time: float) -> int:
    """The nearest whole microsecond, in nanoseconds."""
    return round(time / TICK) * TICK

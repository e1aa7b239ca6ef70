"""How many requests a second are to be expected, as straight pieces, and when so many of them are.

What makes a rate rise and fall is a stream of pieces each, from a beginning on; several are multiplied into one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

from pydantic import Field, model_validator

from replay.clock import NANOSECONDS
from replay.traces.generating.gaps import Family, FamilyName
from replay.traces.generating.sections import Section, Stretch


class Phase(Section):
    """A stretch of a user's time: so many requests a second, rising or falling evenly to `rate_at_end` if given.

    Or exactly so many: a `count`. It may have a `burstiness` and a family of `gaps` of its own.
    """

    rate: float | None = Field(default=None, ge=0)
    count: int | None = Field(default=None, ge=0)
    rate_at_end: float | None = Field(default=None, ge=0)
    lasts: Stretch | None = None
    burstiness: float | None = Field(default=None, gt=0, le=10)
    gaps: FamilyName | None = None

    @model_validator(mode="after")
    def consistent(self) -> Phase:
        if (self.rate is None) == (self.count is None):
            raise ValueError("give either rate (requests per second) or count (requests in all of the phase)")
        if self.count is not None and self.rate_at_end is not None:
            raise ValueError("rate_at_end goes with rate, not with count")
        return self


@dataclass(frozen=True, slots=True)
class Piece:
    """For `lasts` nanoseconds, a rate that begins at `rate` and grows by `slope` in each of them.

    As a factor it has no unit; otherwise it is requests a second, and gaps that begin in it are of a `family`.
    """

    lasts: float
    rate: float
    slope: float = 0.0
    family: Family | None = None

    @property
    def requests(self) -> float:
        """How many are to be expected."""
        return (self.rate + self.slope * self.lasts / 2) * self.lasts / NANOSECONDS

    def cut(self, lasts: float) -> tuple[Piece, Piece]:
        """What comes before an instant, and what after it."""
        after = self.rate + self.slope * lasts
        return replace(self, lasts=lasts), replace(self, lasts=self.lasts - lasts, rate=after)


def phase_pieces(
    phases: Sequence[Phase], lasts: int, *, part: float = 1.0, families: Sequence[Family | None] = (None,)
) -> Iterator[Piece]:
    """The phases one after the other, again and again, cut off after so many nanoseconds; `part` of each rate."""
    left = float(lasts)
    for phase, family in zip(cycle(phases), cycle(families), strict=False):
        piece = left if phase.lasts is None else min(phase.lasts, left)
        rate = phase.rate or 0.0
        rise = (rate if phase.rate_at_end is None else phase.rate_at_end) - rate
        yield Piece(piece, part * rate, part * (rise / (phase.lasts or piece)), family)
        left -= piece
        if left <= 0:
            return


def multiplied(pieces: Iterable[Piece], factors: Iterator[Piece]) -> Iterator[Piece]:
    """A rate times a factor that goes on for longer; where both rise or fall, straight between the two ends."""
    factor = next(factors)
    for piece in pieces:
        rest = piece
        while rest.lasts > 0:
            while factor.lasts <= 0:
                factor = next(factors)
            lasts = min(rest.lasts, factor.lasts)
            now, rest = rest.cut(lasts)
            by, factor = factor.cut(lasts)
            begins = now.rate * by.rate
            ends = (now.rate + now.slope * lasts) * (by.rate + by.slope * lasts)
            yield replace(now, rate=begins, slope=(ends - begins) / lasts if now.slope or by.slope else 0.0)


def crossings(pieces: Iterable[Piece], begin: float, following: Callable[[Piece, float], float]) -> Iterator[float]:
    """When, from an instant on, as many requests are to be expected as `following` says, time after time.

    It is asked what comes after so many requests, at the piece in which they are reached.
    """
    wanted: float | None = None
    before = 0.0
    for piece in pieces:
        within = piece.requests
        if within > 0:
            if wanted is None:
                wanted = following(piece, 0.0)
            while wanted <= before + within:  # as the pieces are added up, so that all of them hold what they come to
                yield begin + reached(wanted - before, piece.rate / NANOSECONDS, piece.slope / NANOSECONDS)
                wanted = following(piece, wanted)
        before, begin = before + within, begin + piece.lasts


def reached(requests: float, rate: float, slope: float) -> float:
    """After how long so many requests are to be expected, at a rate that grows by `slope`: both by the nanosecond."""
    if slope == 0:
        return requests / rate
    root = rate + math.sqrt(max(0.0, rate * rate + 2 * slope * requests))
    return 2 * requests / root if root > 0 else 0.0

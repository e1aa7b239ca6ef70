"""How many requests a second are to be expected, as straight pieces, and when so many of them are.

What makes a rate rise and fall is a stream of pieces each; several are multiplied into one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

from pydantic import Field

from replay.clock import NANOSECONDS
from replay.traces.generating.gaps import FamilyName
from replay.traces.generating.sections import Section, Stretch


class Phase(Section):
    """A stretch of a user's time: so many requests a second, rising or falling evenly to `rate_at_end` if given.

    It may have a `burstiness` and a family of `gaps` of its own.
    """

    rate: float = Field(ge=0)
    rate_at_end: float | None = Field(default=None, ge=0)
    lasts: Stretch | None = None
    burstiness: float | None = Field(default=None, gt=0, le=10)
    gaps: FamilyName | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """For `lasts` nanoseconds, a rate that begins at `rate` and grows by `slope` in each of them."""

    lasts: float
    rate: float
    slope: float = 0.0
    phase: Phase | None = None

    @property
    def requests(self) -> float:
        """How many are to be expected, where the rate is of requests a second."""
        return (self.rate + self.slope * self.lasts / 2) * self.lasts / NANOSECONDS


def phase_pieces(phases: Sequence[Phase], lasts: int, part: float = 1.0) -> Iterator[Piece]:
    """The phases one after the other, again and again, cut off after so many nanoseconds; `part` of each rate."""
    left = float(lasts)
    for phase in cycle(phases):
        piece = left if phase.lasts is None else min(phase.lasts, left)
        rise = (phase.rate if phase.rate_at_end is None else phase.rate_at_end) - phase.rate
        yield Piece(piece, part * phase.rate, part * (rise / (phase.lasts or piece)), phase)
        left -= piece
        if left <= 0:
            return


def crossings(pieces: Iterable[Piece], begin: float, gap: Callable[[Piece], float]) -> Iterator[float]:
    """When, from an instant on, as many requests as each `gap` says are to be expected since the one before.

    A gap is asked for at the piece in which it begins.
    """
    wanted: float | None = None
    before = 0.0
    for piece in pieces:
        within = piece.requests
        if wanted is None and within > 0:
            wanted = gap(piece)
        while wanted is not None and wanted - before < within:
            yield begin + reached(wanted - before, piece.rate / NANOSECONDS, piece.slope / NANOSECONDS)
            wanted += gap(piece)
        before, begin = before + within, begin + piece.lasts


def reached(requests: float, rate: float, slope: float) -> float:
    """After how long so many requests are to be expected, at a rate that grows by `slope`: both by the nanosecond."""
    if slope == 0:
        return requests / rate
    return 2 * requests / (rate + math.sqrt(max(0.0, rate * rate + 2 * slope * requests)))

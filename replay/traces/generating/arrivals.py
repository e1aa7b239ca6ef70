"""When the requests (or sessions) of one user arrive: gaps of a family, laid over a rate that rises and falls.

With a `count`, the gaps (one more than requests) are stretched to fill the user's time, so a shorter duration is the
same pattern, faster. Otherwise they follow each other until that time is over, and go by faster where more requests
are to be expected: each gap is over when its share of a request has been.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate

from replay.traces.generating.gaps import FAMILIES, Family
from replay.traces.generating.population import Member
from replay.traces.generating.rates import Phase, Piece, crossings, phase_pieces
from replay.traces.generating.sections import TICK
from replay.traces.generating.specification import Spec, User


def arrivals(spec: Spec, user: User, member: Member) -> Iterator[int]:
    """Nanoseconds since the beginning, in order."""
    stream = random.Random(f"{spec.seed}/{member.name}/arrivals")
    stop = spec.duration if user.stop is None else min(user.stop, spec.duration)
    if member.count is not None:
        family = FAMILIES[user.gaps](user.burstiness)
        *times, end = accumulate(family.gap(stream, 1.0) for _ in range(member.count + 1))
        yield from (user.start + round(time / end * (stop - user.start) / TICK) * TICK for time in times)
        return
    phases = user.phases or [Phase(rate=user.rate or 0.0)]
    families = {id(phase): family_of(user, phase) for phase in phases}

    def gap(piece: Piece) -> float:
        family = families[id(piece.phase)]
        return family.gap(stream, 1 / family.mean)

    for time in crossings(phase_pieces(phases, stop - user.start, member.part), user.start, gap):
        yield round(time / TICK) * TICK


def family_of(user: User, phase: Phase) -> Family:
    """How the gaps that begin in a phase are distributed."""
    burstiness = user.burstiness if phase.burstiness is None else phase.burstiness
    return FAMILIES[phase.gaps or user.gaps](burstiness)

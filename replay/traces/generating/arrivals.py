"""When the requests (or sessions) of one user arrive, by what the specification says of it.

With a `count`, the gaps (one more than requests) are stretched to fill the user's time, so a shorter duration is the
same pattern, faster; so with the `count` of a phase, whose first and last gap are parts of one. Otherwise they follow
each other until that time is over, and go by faster where more requests are to be expected: each gap is over when its
share of a request has been. The clients of a closed loop begin evenly within the time to ramp up.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import accumulate, cycle

from replay.errors import ExperimentError
from replay.traces.generating.gaps import FAMILIES, Family
from replay.traces.generating.population import Member
from replay.traces.generating.rates import Phase, Piece, crossings, multiplied, phase_pieces
from replay.traces.generating.renewals import renewal, ticked
from replay.traces.generating.specification import Spec, User


def arrivals(spec: Spec, user: User, member: Member) -> Iterator[int]:
    """Nanoseconds since the beginning, in order."""
    if user.closed_loop is not None:
        clients, ramp = user.closed_loop.clients, user.closed_loop.ramp
        return (user.start + ticked(ramp * client / clients) for client in range(clients))
    stream = random.Random(f"{spec.seed}/{member.name}/arrivals")
    if member.count is not None:
        return counted(spec, user, member, member.count, stream)
    if user.phases and user.phases[0].count is not None:
        return counted_phases(user, user.phases, stop_of(spec, user), stream)
    pieces = rate_pieces(spec, user, member, user.phases or [Phase(rate=user.rate or 0.0)])
    times = crossings(pieces, user.start, renewal(stream, stationary=user.stationary))
    return map(ticked, times)


def counted(spec: Spec, user: User, member: Member, count: int, stream: random.Random) -> Iterator[int]:
    """So many arrivals, over the user's time as its patterns stretch it."""
    if count == 0:
        return
    family = FAMILIES[user.gaps](user.burstiness)
    *times, end = accumulate(family.gap(stream, 1.0) for _ in range(count + 1))
    if not spec.patterns and not user.patterns:
        stop = stop_of(spec, user)
        yield from (user.start + ticked(time / end * (stop - user.start)) for time in times)
        return
    pieces = list(rate_pieces(spec, user, member, [Phase(rate=1.0)]))
    total = 0.0
    for piece in pieces:
        total += piece.requests
    if total <= 0:
        raise ExperimentError(f"user {member.name!r}: its patterns leave no time for its {count} requests")
    places = iter([min(time / end, 1.0) * total for time in times])
    yield from map(ticked, crossings(pieces, user.start, lambda piece, wanted: next(places, math.inf)))


def counted_phases(user: User, phases: list[Phase], stop: int, stream: random.Random) -> Iterator[int]:
    """So many arrivals in each phase, up to the user's stop.

    Whoever looks at a phase falls into a gap at its beginning, and leaves another unfinished at its end.
    """
    begin = user.start
    for phase in cycle(phases):
        lasts = stop - begin if phase.lasts is None else phase.lasts
        family, count = family_of(user, phase), phase.count or 0
        gaps = [family.rest(stream, 1.0)]
        gaps += [family.gap(stream, 1.0) for _ in range(count - 1)]
        *times, end = accumulate([*gaps, family.rest(stream, 1.0)])
        for time in times[:count]:
            if (place := begin + time / end * lasts) < stop:
                yield ticked(place)
        begin += lasts
        if begin >= stop:
            return


def rate_pieces(spec: Spec, user: User, member: Member, phases: list[Phase]) -> Iterator[Piece]:
    """The member's rate from start to stop, with all that makes it rise and fall."""
    stream = random.Random(f"{spec.seed}/{member.name}/patterns")
    families = [family_of(user, phase) for phase in phases]
    lasts = stop_of(spec, user) - user.start
    pieces = phase_pieces(phases, lasts, part=member.part, families=families)
    for pattern in (*spec.patterns, *user.patterns):
        pieces = multiplied(pieces, pattern.factors(user.start, stream))
    return pieces


def stop_of(spec: Spec, user: User) -> int:
    """When the user's time is over."""
    return spec.duration if user.stop is None else min(user.stop, spec.duration)


def family_of(user: User, phase: Phase) -> Family:
    """How the gaps that begin in a phase are distributed."""
    burstiness = user.burstiness if phase.burstiness is None else phase.burstiness
    return FAMILIES[phase.gaps or user.gaps](burstiness)

"""How surely the mean of differences along a trace is known: by the slowest waves in them.

Neighbours share a queue, so differences rise and fall together over many requests, and their mean strays as far as
their slowest waves are high. Only a few waves tell how high; the fewer they are, the longer a queue may last without
being mistaken for many observations, and the wider is the interval. It knows no queue: one that lasts for about as long
as the trace shows in no wave.
"""

from __future__ import annotations

import math

import numpy as np

from replay.metrics.resampling import FEWEST_PAIRS, Errors, Floats, Mask, Sample
from replay.metrics.simultaneous import widened

MOST_WAVES = 32
"""More would tell hardly more, and a longer trace may have a longer queue."""
FEWEST_WAVES = 2
"""Of a queue that grew all along: it never forgets, however many requests there are."""
STEEP = 1.96
"""How many standard errors, of a normal, a trend must rise to be one: one in twenty by chance."""


def waves(pairs: int) -> int:
    """How many waves tell of so many requests: 0.4 times the root, so that the quickest lasts for 5 roots."""
    return min(MOST_WAVES, max(FEWEST_WAVES, round(0.4 * math.sqrt(pairs))))


def wave_errors(found: Sample, grown: Mask) -> Errors:
    """Of each column, over the requests that have a value, in order of arrival; `grown`: its queue grew all along.

    Of n parts (d(t) - mean) / n, the variance is the mean of A(j)^2, where A(j) = sqrt(2) sum of part(t) cos(pi j t /
    n), t = 1/2, 3/2, ..., over the K slowest waves, j = 1 to K: each A(j) is normal and strays as far as the mean, so
    that mean / error has Student's t with K degrees of freedom, however few they are (U. K. Müller, 2004; E. Lazarus,
    D. J. Lewis, J. H. Stock, M. W. Watson, 2018). Twice as many are looked at besides. If they are no lower on average,
    as of independent requests, theirs is the variance and there are 2 K degrees of freedom. If they are, by a ratio r,
    waves that are slower than the trace would be higher still: the variance is divided by r, and there are K (1 + r^2).

    A queue that grew from the first request to the last adds up what happened, so two waves are all that tells. All
    wait longer than who came before, in any trace like this one: a trend that is steep beside them is taken out.
    """
    error, freedom = np.zeros(len(found.means)), np.zeros(len(found.means))
    parts = _in_order(found)
    for pairs in np.unique(found.pairs[found.pairs >= FEWEST_PAIRS]).tolist():
        for growing, few in ((False, waves(pairs)), (True, FEWEST_WAVES)):
            alike = (found.pairs == pairs) & (grown == growing)
            heights, level, slope = _heights(parts[:pairs, alike], 2 * few)
            steep = growing & _steep(np.abs(slope), level[:few])
            squares = np.where(steep, level, heights) ** 2
            slow, more = squares[:few].mean(axis=0), squares.mean(axis=0)
            ratio = np.minimum(1.0, more / np.where(slow > 0, slow, 1.0))
            error[alike] = np.sqrt(np.maximum(slow, more) / np.where(slow > 0, ratio, 1.0))
            freedom[alike] = few * (1 + ratio**2)
    return Errors(error, freedom)


def growing(queues: Sample) -> Mask:
    """Whether each column, the length of a queue at every arrival, rises steeply: a queue that grew all along."""
    found = np.zeros(len(queues.means), np.bool_)
    parts = _in_order(queues)
    for pairs in np.unique(queues.pairs[queues.pairs >= FEWEST_PAIRS]).tolist():
        alike = queues.pairs == pairs
        _, level, slope = _heights(parts[:pairs, alike], waves(pairs))
        found[alike] = _steep(slope, level)
    return found


def _in_order(found: Sample) -> Floats:
    """The parts of each column with those that there are first, in order of arrival."""
    if found.present.all():
        return found.parts
    return np.take_along_axis(found.parts, np.argsort(~found.present, axis=0, kind="stable"), axis=0)


def _heights(parts: Floats, many: int) -> tuple[Floats, Floats, Floats]:
    """A(1), A(2), ... of each column, a row a wave; A(2), A(3), ... without its straight trend; and how high that is,
    measured as the waves are."""
    n = len(parts)
    place = np.arange(n) - (n - 1) / 2
    trend = place / math.sqrt((place**2).sum())
    slope = trend @ parts
    turn = np.pi * (np.arange(n) + 0.5) / n
    each = [math.sqrt(2) * np.cos(turn * wave) for wave in range(1, many + 2)]
    heights = np.stack([wave @ parts for wave in each])
    level = np.stack([wave @ (parts - np.outer(trend, slope)) for wave in each[1:]])
    return heights[:-1], level, math.sqrt(n) * slope


def _steep(slope: Floats, level: Floats) -> Mask:
    """Whether a trend is higher than the waves around it let expect."""
    found: Mask = slope > widened(STEEP, np.full(1, float(len(level)))) * np.sqrt((level**2).mean(axis=0))
    return found

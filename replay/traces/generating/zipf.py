"""Zipf's law, by which shares fall with rank: users of a service, copies of a prefix, lengths."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from pydantic import Field

from replay.traces.generating.sections import Section


class Share(Section):
    """How something is split among many: by Zipf's law the first has 2^zipf times what the second has; 0 is evenly."""

    zipf: float = Field(ge=0, le=10)

    def weights(self, many: int) -> list[float]:
        """The part of each, in order of rank; 1 together."""
        raw = [rank**-self.zipf for rank in range(1, many + 1)]
        total = math.fsum(raw)
        return [weight / total for weight in raw]


def cumulated(weights: Iterable[float]) -> list[float]:
    """What the weights come to, up to each place: what `picker` draws by."""
    return list(accumulate(weights))


def picker(upto: Sequence[float], stream: random.Random) -> Callable[[], int]:
    """Draws places, each as often as its weight says, which is what is added to `upto` there."""
    last = len(upto) - 1

    def pick() -> int:
        return min(bisect_right(upto, stream.random() * upto[-1]), last)

    return pick


def split(total: int, weights: Sequence[float]) -> list[int]:
    """`total` in whole parts as near to the weights as can be; what is left over goes to the largest remainders."""
    exact = [total * weight for weight in weights]
    parts = [math.floor(part) for part in exact]
    ranked = sorted(range(len(parts)), key=lambda place: parts[place] - exact[place])
    for place in ranked[: total - sum(parts)]:
        parts[place] += 1
    return parts

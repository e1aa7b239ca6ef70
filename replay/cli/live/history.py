"""A figure over time in bounded memory: the longer it goes on, the coarser it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

SLOTS = 256
FINEST = 0.25  # seconds in one slot, to begin with
BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = "_.:-=+*#"  # where a terminal has no blocks


class History:
    """Means over equal slots of time from 0 on; once all slots are full, two become one, twice as long."""

    def __init__(self, slots: int = SLOTS, finest: float = FINEST) -> None:
        self._slots = slots
        self._width = finest
        self._means: list[float] = []
        self._counts: list[int] = []  # values that a mean is of; 0 where none came, and the one before holds

    def add(self, time: float, value: float) -> None:
        """What the figure is at `time`, no sooner than the last."""
        while (slot := int(time / self._width)) >= self._slots:
            self._halve()
        while len(self._means) <= slot:
            self._means.append(self._means[-1] if self._means else value)
            self._counts.append(0)
        slot = len(self._means) - 1
        count = self._counts[slot] = self._counts[slot] + 1
        self._means[slot] = value if count == 1 else self._means[slot] + (value - self._means[slot]) / count

    def columns(self, count: int) -> list[float]:
        """The whole time in at most `count` parts: the mean of each."""
        have = len(self._means)
        if have <= count:
            return list(self._means)
        bounds = [place * have // count for place in range(count + 1)]
        return [sum(self._means[start:end]) / (end - start) for start, end in pairwise(bounds)]

    def _halve(self) -> None:
        pairs = range(0, len(self._means), 2)
        self._means = [sum(self._means[at : at + 2]) / len(self._means[at : at + 2]) for at in pairs]
        self._counts = [sum(self._counts[at : at + 2]) for at in pairs]
        self._width *= 2


def sparkline(values: Sequence[float], most: float, bars: str = BARS) -> str:
    """One bar for each value, of eight heights up to `most`. Only 0 has the lowest."""
    if most <= 0:
        return bars[0] * len(values)
    top = len(bars) - 1
    return "".join(bars[0 if value <= 0 else min(top, 1 + int((top - 1) * value / most + 0.5))] for value in values)

"""Quantiles of values that keep coming, in bounded memory."""

from __future__ import annotations

from bisect import insort
from random import Random

SIZE = 4096


class Sample:
    """All of the values up to `size`; from then on an even sample of them, in which each is as likely as any other."""

    def __init__(self, size: int = SIZE) -> None:
        self.count = 0
        self._size = size
        self._total = 0.0
        self._values: list[float] = []  # in order
        self._random = Random(0)

    @property
    def exact(self) -> bool:
        """Whether quantiles are those of all values."""
        return self.count <= self._size

    @property
    def mark(self) -> str:
        """What stands before a quantile that is not exact."""
        return "" if self.exact else "~"

    @property
    def mean(self) -> float | None:
        """Of all values."""
        return self._total / self.count if self.count else None

    def add(self, value: float) -> None:
        self.count += 1
        self._total += value
        if not self.exact:
            place = self._random.randrange(self.count)
            if place >= self._size:
                return
            del self._values[place]
        insort(self._values, value)

    def quantile(self, share: float) -> float | None:
        """Linear between the two nearest values, as in the report; None when there are none."""
        if not self._values:
            return None
        place = share * (len(self._values) - 1)
        below = int(place)
        above = min(below + 1, len(self._values) - 1)
        return self._values[below] + (place - below) * (self._values[above] - self._values[below])

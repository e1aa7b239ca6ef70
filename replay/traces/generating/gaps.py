"""Gaps between the arrivals of one user: families of distributions, each by its coefficient of variation.

A family knows nothing of rates: its gaps are counted in requests to be expected, and their mean is one request. How
long that takes is in `replay.traces.generating.rates`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache
from typing import Literal, Protocol

FamilyName = Literal["gamma", "weibull"]
NARROWEST = 0.01  # the least coefficient of variation for which a Weibull shape can be told apart from the next


class Family(Protocol):
    """A distribution of gaps. `gap` draws one of mean `scale` times `mean`; `rest` what is left of one that an
    onlooker falls into, who is more likely to fall into a long one."""

    mean: float

    def gap(self, stream: random.Random, scale: float) -> float: ...

    def rest(self, stream: random.Random, scale: float) -> float: ...


class Gamma:
    """Shape 1 / cv^2; at a coefficient of variation of 1 it is the exponential distribution, of Poisson arrivals."""

    def __init__(self, variation: float) -> None:
        self.mean = 1 / variation**2

    def gap(self, stream: random.Random, scale: float) -> float:
        return stream.gammavariate(self.mean, scale)

    def rest(self, stream: random.Random, scale: float) -> float:
        return stream.gammavariate(self.mean + 1, scale) * stream.random()


class Weibull:
    """The shape is solved from the coefficient of variation."""

    def __init__(self, variation: float) -> None:
        self.shape = weibull_shape(variation)
        self.mean = math.gamma(1 + 1 / self.shape)

    def gap(self, stream: random.Random, scale: float) -> float:
        return stream.weibullvariate(scale, self.shape)

    def rest(self, stream: random.Random, scale: float) -> float:
        return scale * math.pow(stream.gammavariate(1 + 1 / self.shape, 1.0), 1 / self.shape) * stream.random()


@cache
def weibull_shape(variation: float) -> float:
    """The shape at which Weibull-distributed gaps have this coefficient of variation; it falls as that rises."""
    low, high = 0.1, 2 / min(variation, 1.0)
    for _ in range(60):
        shape = (low + high) / 2
        found = math.expm1(math.lgamma(1 + 2 / shape) - 2 * math.lgamma(1 + 1 / shape))
        low, high = (shape, high) if found > variation**2 else (low, shape)
    return round(low, 12)  # the last digits could differ between two machines


FAMILIES: dict[str, Callable[[float], Family]] = {"gamma": Gamma, "weibull": Weibull}

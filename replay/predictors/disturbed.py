"""Predictors that know the true length, and say it as it is or disturbed: what a prediction so good would bring.

What disturbs a row depends on the seed and the row alone: a request has the same prediction under every policy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

from replay.predictors.predictor import Knows, predictors
from replay.request import Request


@predictors.register("oracle")
@dataclass(slots=True)
class Oracle:
    """The true length: an upper bound on what knowing lengths can bring."""

    knows: ClassVar[Knows] = "all"

    _truth: Sequence[int] = field(default=(), init=False)

    def start(self, output_tokens: Sequence[int], seed: int = 0) -> None:
        self._truth = output_tokens

    def expect(self, request: Request) -> float:
        return self._truth[request.row]

    def observe(self, request: Request) -> None:
        pass


@dataclass
class Disturbed(ABC):
    """One prediction for each row, made when the cell begins."""

    knows: ClassVar[Knows] = "part"

    _predicted: Sequence[float] = field(default=(), init=False, repr=False)

    @abstractmethod
    def predict(self, output_tokens: Sequence[int], random: Random) -> Sequence[float]:
        """The prediction of each row, with as many draws for each, so that what comes later changes none before."""

    def start(self, output_tokens: Sequence[int], seed: int = 0) -> None:
        self._predicted = self.predict(output_tokens, Random(f"{type(self).__name__} {seed}"))

    def expect(self, request: Request) -> float:
        return self._predicted[request.row]

    def observe(self, request: Request) -> None:
        pass


@predictors.register("noisy")
@dataclass
class Noisy(Disturbed):
    """The true length times exp(N(0, sigma)): right at sigma 0, within a factor of e^sigma two times of three."""

    sigma: float = field(default=0.5, metadata={"minimum": 0, "help": "standard deviation of the natural logarithm"})

    def predict(self, output_tokens: Sequence[int], random: Random) -> Sequence[float]:
        return [tokens * math.exp(random.normalvariate(0, self.sigma)) for tokens in output_tokens]


@predictors.register("uniform")
@dataclass
class Uniform(Disturbed):
    """The true length, off by a share of it that is drawn evenly from -r to +r: VTC's noisy oracle has r = 0.5."""

    r: float = field(default=0.5, metadata={"minimum": 0, "maximum": 1, "help": "the largest share it is off by"})

    def predict(self, output_tokens: Sequence[int], random: Random) -> Sequence[float]:
        return [tokens * random.uniform(1 - self.r, 1 + self.r) for tokens in output_tokens]


@predictors.register("bucket")
@dataclass
class Bucket(Disturbed):
    """The middle of the true length's bucket, in `accuracy` of all cases; in the others that of a bucket beside it.

    Buckets are `width` tokens wide, as many as the longest answer takes; with one, it is always right. The defaults are
    those of TetriInfer's classifier (Hu et al., 2024, arXiv 2401.11181).
    """

    width: int = field(default=200, metadata={"minimum": 1, "help": "tokens of a bucket"})
    accuracy: float = field(
        default=0.749, metadata={"minimum": 0, "maximum": 1, "help": "how often the bucket is the right one"}
    )

    def predict(self, output_tokens: Sequence[int], random: Random) -> Sequence[float]:
        last = (max(output_tokens, default=1) - 1) // self.width
        return [self._middle((tokens - 1) // self.width, last, random) for tokens in output_tokens]

    def _middle(self, bucket: int, last: int, random: Random) -> float:
        right, upwards = random.random() < self.accuracy, random.random() < 0.5
        if not right and last:
            beside = bucket + 1 if upwards else bucket - 1
            bucket = beside if 0 <= beside <= last else 2 * bucket - beside
        return bucket * self.width + (self.width + 1) / 2

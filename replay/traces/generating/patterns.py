"""What makes a rate rise and fall: the hour of the day, spikes, stretches of silence. Each is a factor of the rate.

A pattern is a table of the file with one method, `factors`: pieces without end, from an instant on. Patterns combine,
because a rate is multiplied by each of them. A new one is a key of `Patterns`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import count
from typing import Literal, Protocol

from pydantic import Field, model_validator

from replay.traces.durations import UNITS
from replay.traces.generating.rates import Piece
from replay.traces.generating.sections import Duration, Section, Stretch

STEPS = 96  # straight pieces of a period: a quarter of an hour of a day; they miss the cosine by less than 0.0006


class Pattern(Protocol):
    """A factor of the rate, from `begin` nanoseconds after the beginning of the trace on."""

    def factors(self, begin: float, stream: random.Random) -> Iterator[Piece]: ...


class Diurnal(Section):
    """A wave: 1 + `amplitude` at `peak_at`, 1 - `amplitude` half a `period` from it, 1 on average."""

    period: Stretch = 24 * UNITS["h"]
    peak_at: Duration
    amplitude: float = Field(gt=0, le=1)

    def factors(self, begin: float, stream: random.Random) -> Iterator[Piece]:
        step = self.period / STEPS
        first = math.floor((begin - self.peak_at) / step)
        late = begin - (self.peak_at + first * step)
        for place in count(first):
            low, high = self._level(place), self._level(place + 1)
            piece = Piece(step, low, (high - low) / step)
            if place == first and late > 0:
                _, piece = piece.cut(late)
            yield piece

    def _level(self, place: int) -> float:
        wave = round(math.cos(2 * math.pi * (place % STEPS) / STEPS), 12)  # the same on every machine
        return 1 + self.amplitude * wave


class Spike(Section):
    """From `at` on, for as long as it `lasts`, `times` the rate; again `every` so long, if given."""

    at: Duration
    lasts: Stretch
    times: float = Field(ge=0)
    every: Stretch | None = None

    @model_validator(mode="after")
    def consistent(self) -> Spike:
        if self.every is not None and self.every < self.lasts:
            raise ValueError("every must be as long as the spike lasts, or longer")
        return self

    def factors(self, begin: float, stream: random.Random) -> Iterator[Piece]:
        now = begin
        for number in count() if self.every else range(1):
            opens = self.at + number * (self.every or 0)
            for until, factor in ((opens, 1.0), (opens + self.lasts, self.times)):
                if until > now:
                    yield Piece(until - now, factor)
                    now = until
        yield Piece(math.inf, 1.0)


class OnOff(Section):
    """Stretches in which requests come at the rate, and stretches in which none come; as long as this on average.

    Their lengths are exponential, or fixed. The beginning falls anywhere in them.
    """

    on: Stretch
    off: Stretch
    stretches: Literal["exponential", "fixed"] = "exponential"

    def factors(self, begin: float, stream: random.Random) -> Iterator[Piece]:
        place = stream.random() * (self.on + self.off)
        if self.stretches == "fixed":
            if place < self.on:
                yield Piece(self.on - place, 1.0)
            yield Piece(self.off - max(0.0, place - self.on), 0.0)
        elif place >= self.on:
            yield Piece(self.off * stream.expovariate(1.0), 0.0)
        for lasts, factor in _forever((self.on, 1.0), (self.off, 0.0)):
            yield Piece(lasts if self.stretches == "fixed" else lasts * stream.expovariate(1.0), factor)


def _forever(*stretches: tuple[int, float]) -> Iterator[tuple[int, float]]:
    while True:
        yield from stretches


class Common(Section):
    """The patterns that users may have in common."""

    diurnal: Diurnal | None = Field(
        default=None,
        description="a wave around the rate",
        examples=['{ period = "24h", peak_at = "14h", amplitude = 0.8 }'],
    )
    spikes: list[Spike] = Field(
        default=[],
        description="so many times the rate, once, or every so long",
        examples=['[{ at = "20m", lasts = "30s", times = 10, every = "1h" }]'],
    )

    @property
    def patterns(self) -> list[Pattern]:
        """All that the rate is multiplied by."""
        return [*([self.diurnal] if self.diurnal else []), *self.spikes]


class Patterns(Common):
    """The patterns of one user."""

    on_off: OnOff | None = Field(
        default=None,
        description="stretches with and without requests, exponential or fixed",
        examples=['{ on = "10s", off = "50s", stretches = "fixed" }'],
    )

    @property
    def patterns(self) -> list[Pattern]:
        """All that the rate is multiplied by."""
        return [*super().patterns, *([self.on_off] if self.on_off else [])]

"""How many tokens, turns, or milliseconds of thought: a table of forms, each a few keys and how they are drawn.

A form is a key of `Amounts`, a function that draws by it, and the largest that it can come to, together in `FORMS`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

from pydantic import Field, model_validator

from replay.traces.generating.samples import Empirical
from replay.traces.generating.sections import Count, Section
from replay.traces.generating.zipf import cumulated, picker

Draw = Callable[[], float]
Amount = Annotated[float, Field(ge=0)]


class Zipf(Section):
    """Whole numbers from `least` to `most`, each as likely as its value to the power of minus `exponent`."""

    exponent: float = Field(ge=0, le=10)
    least: int = Field(default=1, ge=1)
    most: int = Field(ge=1, le=10_000_000)

    @model_validator(mode="after")
    def consistent(self) -> Zipf:
        if self.least > self.most:
            raise ValueError(f"least = {self.least} is more than most = {self.most}")
        return self

    @cached_property
    def upto(self) -> list[float]:
        return cumulated(value**-self.exponent for value in range(self.least, self.most + 1))


class Amounts(Section):
    """Numbers, in one of several forms.

    `median`: lognormal, `spread` the standard deviation of the logarithm, kept between `least` and `most`. `uniform`:
    from the first to the second, both included. `choices`: one of these, each as likely. `fixed`: always the same.
    `quantiles`: from the minimum to the maximum, evenly spaced in probability, and evenly drawn between two of them.
    `empirical`: as a column of another trace has them. A plain number is always the same, too.
    """

    median: float | None = Field(default=None, gt=0)
    spread: float = Field(default=0.0, ge=0, le=20)
    least: float = Field(default=0, ge=0)
    most: float | None = Field(default=None, ge=0)
    uniform: tuple[Amount, Amount] | None = None
    choices: tuple[Amount, ...] | None = Field(default=None, min_length=1)
    fixed: float | None = Field(default=None, ge=0)
    quantiles: tuple[Amount, ...] | None = Field(default=None, min_length=2)
    empirical: Empirical | None = None

    @model_validator(mode="before")
    @classmethod
    def plain(cls, given: Any) -> Any:
        """A number is `fixed`. What went through a validator is Python, where strictness wants tuples for lists."""
        if isinstance(given, int | float) and not isinstance(given, bool):
            return {"fixed": given}
        if not isinstance(given, dict):
            return given
        return {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}

    @model_validator(mode="after")
    def consistent(self) -> Amounts:
        known = [name for name in FORMS if name in type(self).model_fields]
        forms = [name for name in known if getattr(self, name) is not None]
        if len(forms) != 1:
            *others, last = known[1:]
            raise ValueError(f"give one of {known[0]} (with most), {', '.join(others)} and {last}")
        strangers = self.model_fields_set & {"spread", "least", "most"}
        if self.median is None and strangers:
            raise ValueError(f"{min(strangers)} goes with median, not with {forms[0]}")
        if self.median is not None and self.most is None:
            raise ValueError("median needs most, the largest count there may be")
        if self.most is not None and self.least > self.most:
            raise ValueError(f"least = {self.least} is more than most = {self.most}")
        if self.uniform is not None and self.uniform[0] > self.uniform[1]:
            raise ValueError(f"uniform = {list(self.uniform)}: the first is more than the second")
        if self.quantiles is not None and any(low > high for low, high in pairwise(self.quantiles)):
            raise ValueError("quantiles must not fall")
        return self

    @property
    def form(self) -> Form:
        return next(form for name, form in FORMS.items() if getattr(self, name, None) is not None)

    @property
    def largest(self) -> float:
        """No amount is larger."""
        return self.form.largest(self)

    def drawn_from(self, stream: random.Random) -> Draw:
        """A function that draws one amount at a time."""
        return self.form.draws(self, stream)


class Times(Amounts):
    """Milliseconds. `exponential`: of this mean."""

    exponential: float | None = Field(default=None, gt=0)

    def times_from(self, stream: random.Random) -> Draw:
        """A function that draws one time; to the microsecond, as arrivals are."""
        draw = self.drawn_from(stream)
        return draw if self.fixed is not None else lambda: round(draw(), 3)


class Lengths(Amounts):
    """Counts (of tokens, of turns): whole numbers of 1 or more. `zipf`: few are long, by Zipf's law."""

    least: int = Field(default=1, ge=1)
    most: int | None = Field(default=None, ge=1)
    uniform: tuple[Count, Count] | None = None
    choices: tuple[Count, ...] | None = Field(default=None, min_length=1)
    fixed: int | None = Field(default=None, ge=1)
    quantiles: tuple[Annotated[float, Field(ge=1)], ...] | None = Field(default=None, min_length=2)
    zipf: Zipf | None = None

    @model_validator(mode="after")
    def counted(self) -> Lengths:
        values = self.empirical.sample.values if self.empirical else ()
        if any(value < 1 or value % 1 for value in values):
            raise ValueError("empirical: the column holds values that are not counts of 1 or more")
        return self

    def counts_from(self, stream: random.Random) -> Callable[[], int]:
        """A function that draws one count at a time."""
        draw = self.drawn_from(stream)
        return lambda: round(draw())


def lognormal(amounts: Amounts, stream: random.Random) -> Draw:
    median, spread, least, most = amounts.median or 0.0, amounts.spread, amounts.least, amounts.most or 0.0
    return lambda: min(max(median * math.exp(spread * stream.gauss(0, 1)), least), most)


def uniform(amounts: Amounts, stream: random.Random) -> Draw:
    first, last = amounts.uniform or (0, 0)
    if isinstance(amounts, Lengths):
        return lambda: stream.randint(int(first), int(last))
    return lambda: stream.uniform(first, last)


def choices(amounts: Amounts, stream: random.Random) -> Draw:
    given = amounts.choices or ()
    return lambda: stream.choice(given)


def fixed(amounts: Amounts, stream: random.Random) -> Draw:
    always = amounts.fixed or 0
    return lambda: always


def quantiles(amounts: Amounts, stream: random.Random) -> Draw:
    given = amounts.quantiles or ()
    steps = [high - low for low, high in pairwise(given)]

    def draw() -> float:
        place = stream.random() * len(steps)
        return given[int(place)] + steps[int(place)] * (place % 1)

    return draw


def empirical(amounts: Amounts, stream: random.Random) -> Draw:
    assert amounts.empirical is not None, "the form was chosen by its key"
    return amounts.empirical.sample.drawn_from(stream)


def exponential(amounts: Times, stream: random.Random) -> Draw:
    mean = amounts.exponential or 0.0
    return lambda: mean * stream.expovariate(1.0)


def zipf(amounts: Lengths, stream: random.Random) -> Draw:
    law = amounts.zipf
    assert law is not None, "the form was chosen by its key"
    pick = picker(law.upto, stream)
    return lambda: law.least + pick()


class Form(NamedTuple):
    """A way of drawing, the largest amount that it can draw, and how it is told of."""

    draws: Callable[[Any, random.Random], Draw]
    largest: Callable[[Any], float]
    example: str
    meaning: str


FORMS: dict[str, Form] = {
    "median": Form(
        lognormal,
        lambda amounts: amounts.most,
        "{ median = 90, spread = 0.8, most = 4096 }",
        "lognormal, kept between least and most; spread is the standard deviation of the logarithm",
    ),
    "uniform": Form(
        uniform, lambda amounts: amounts.uniform[1], "{ uniform = [1, 9] }", "each from the first to the second"
    ),
    "choices": Form(
        choices, lambda amounts: max(amounts.choices), "{ choices = [1, 2, 9] }", "one of these, each as likely"
    ),
    "fixed": Form(fixed, lambda amounts: amounts.fixed, "{ fixed = 9 }", "always the same; 9 alone will do"),
    "quantiles": Form(
        quantiles,
        lambda amounts: round(amounts.quantiles[-1]),
        "{ quantiles = [1, 40, 9000] }",
        "from the minimum over the median to the maximum; any number of them, evenly spaced in probability",
    ),
    "empirical": Form(
        empirical,
        lambda amounts: max(amounts.empirical.sample.values),
        '{ empirical = { trace = "x.parquet", column = "output_tokens" } }',
        "as a column of another trace has them",
    ),
    "exponential": Form(
        exponential, lambda amounts: math.inf, "{ exponential = 900 }", "of this mean; for times to think"
    ),
    "zipf": Form(
        zipf,
        lambda amounts: amounts.zipf.most,
        "{ zipf = { exponent = 1.2, least = 1, most = 4096 } }",
        "by Zipf's law: n as likely as n to the power of minus the exponent; for counts",
    ),
}

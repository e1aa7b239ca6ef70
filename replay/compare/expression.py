"""What `--fail-if` takes: `ttft_p99 > 1.05 * baseline and seen where policy = fifo`, read by hand and never evaluated.

check     = FIGURE op bound ["and seen"] ["where" condition {"and" condition}]
op        = ">" | ">=" | "<" | "<="
bound     = amount | [NUMBER "*"] "baseline" [("+" | "-") amount] | "baseline" "*" NUMBER
amount    = NUMBER [UNIT]
condition = NAME ("=" | "!=") VALUE
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from replay.compare.figures import SECONDS, Figure, find_figure
from replay.errors import ExperimentError

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
WORDS = {">": "more than", ">=": "no less than", "<": "less than", "<=": "no more than"}
UNITS = {"": 1.0, "s": 1.0, "ms": 1e3, "us": 1e6, "%": 100.0}
"""How many of each make what is kept: seconds, or a share of 1."""
NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
NAME = r"[A-Za-z_]\w*"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with the unit that it was given in."""

    number: float
    unit: str = ""

    @property
    def kept(self) -> float:
        """In the unit that values are kept in."""
        return self.number / UNITS[self.unit]

    def __str__(self) -> str:
        return f"{_plain(self.number)}{self.unit}"


@dataclass(frozen=True, slots=True)
class Bound:
    """`factor * baseline + amount`; without a factor, the amount alone."""

    factor: float | None = None
    amount: Amount | None = None
    sign: int = 1

    @property
    def relative(self) -> bool:
        return self.factor is not None

    def value(self, baseline: float | None) -> float | None:
        """What a value is held against; None where that takes a baseline which is not defined."""
        amount = 0.0 if self.amount is None else self.sign * self.amount.kept
        if self.factor is None:
            return amount
        return None if baseline is None else self.factor * baseline + amount

    def __str__(self) -> str:
        if self.factor is None:
            return str(self.amount)
        base = "baseline" if self.factor == 1 else f"{_plain(self.factor)} * baseline"
        return base if self.amount is None else f"{base} {'+' if self.sign > 0 else '-'} {self.amount}"


@dataclass(frozen=True, slots=True)
class Condition:
    """Which cells are meant: by trace, mode, policy, run, or a setting."""

    name: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        bare = re.fullmatch(r"[^\s\"'=!]+", self.value)
        quote = '"' if "'" in self.value else "'"
        return f"{self.name} {'=' if self.equal else '!='} {self.value if bare else f'{quote}{self.value}{quote}'}"


@dataclass(frozen=True, slots=True)
class Check:
    """It fails where the comparison holds: of a difference that is `seen`, if that is asked for."""

    figure: Figure
    operator: str
    bound: Bound
    seen: bool = False
    conditions: tuple[Condition, ...] = ()

    def breached(self, value: float, bound: float) -> bool:
        return OPERATORS[self.operator](value, bound)

    def __str__(self) -> str:
        text = f"{self.figure.name} {self.operator} {self.bound}{' and seen' if self.seen else ''}"
        return f"{text} where {' and '.join(map(str, self.conditions))}" if self.conditions else text


def _plain(value: float) -> str:
    """A number as it is typed: `200`, not `200.0`."""
    return repr(int(value)) if value == int(value) and value < 1e15 else repr(value)


def read_check(text: str) -> Check:
    """The check that a text stands for; ExperimentError, with the place, where it stands for none."""
    source = _Source(text)
    name = source.take(r"[A-Za-z_]\w*(?:\.\d+)?", "the name of a figure, such as ttft_p99")
    figure = find_figure(name)
    sign = source.take(r">=|<=|>|<", "one of > >= < <=")
    bound = _bound(source, figure)
    seen, conditions = False, []
    if source.have(r"and\b"):
        source.take(r"seen\b", "'seen' (conditions on cells come after 'where')")
        seen = True
    if source.have(r"where\b"):
        while True:
            if source.have(r"seen\b(?!\s*!?=)"):
                seen = True
            else:
                conditions.append(_condition(source))
            if not source.have(r"and\b"):
                break
    source.end("'and seen', 'where' or the end" if not conditions else "'and' or the end")
    if seen and not bound.relative:
        raise source.fault("'and seen' is of a difference from the baseline, which this does not ask about")
    return Check(figure, sign, bound, seen, tuple(conditions))


def _bound(source: _Source, figure: Figure) -> Bound:
    factor, amount, sign = None, None, 1
    if source.have(r"baseline\b"):
        factor = source.number() if source.have(r"\*") else 1.0
    else:
        found = _amount(source, "a number, or 'baseline'")
        if found.unit or not source.have(r"\*"):
            return Bound(amount=_suited(source, found, figure))
        source.take(r"baseline\b", "'baseline'")
        factor = found.number
    if found_sign := source.have(r"[+-]"):
        sign = 1 if found_sign == "+" else -1
        amount = _amount(source, "an amount")
        if amount.unit == "%":
            raise source.fault("what is added to the baseline is an amount, not a percentage; write 1.05 * baseline")
        amount = _suited(source, amount, figure)
    return Bound(factor, amount, sign)


def _amount(source: _Source, wanted: str) -> Amount:
    value = source.number(wanted)
    return Amount(value, source.have(r"(?:ms|us|s)\b|%") or "")


def _suited(source: _Source, amount: Amount, figure: Figure) -> Amount:
    """The amount, if its unit is one of the figure's."""
    units = ("s", "ms", "us") if figure.unit in SECONDS else ("", "%") if figure.unit == "share" else ("",)
    if amount.unit in units:
        return amount
    number = _plain(amount.number)
    if figure.unit in SECONDS:
        raise source.fault(f"{figure.name} is a time, so a unit is needed: {number}ms or {number}s")
    kept = "a share of 1 or a percentage" if figure.unit == "share" else f"in {figure.unit or 'whole numbers'}"
    raise source.fault(f"{figure.name} is {kept}, so {amount} cannot be held against it")


def _condition(source: _Source) -> Condition:
    name = source.take(NAME, "a condition, such as policy = fifo")
    equal = source.take(r"!=|==?", "= or !=") != "!="
    value = source.take(r"\"[^\"]*\"|'[^']*'|[^\s\"'=!]+", "a value")
    return Condition(name, value[1:-1] if value[0] in "\"'" else value, equal)


class _Source:
    """A text that is read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def have(self, pattern: str) -> str | None:
        """What stands next, if it is that; then it is behind us."""
        found = re.compile(rf"\s*({pattern})").match(self._text, self._place)
        if found is None:
            return None
        self._place = found.end()
        return found.group(1)

    def take(self, pattern: str, wanted: str) -> str:
        found = self.have(pattern)
        if found is None:
            raise self._expected(wanted)
        return found

    def number(self, wanted: str = "a number") -> float:
        value = float(self.take(NUMBER, wanted))
        if not math.isfinite(value):
            raise self.fault("a number is too large")
        return value

    def end(self, wanted: str) -> None:
        if self._text[self._place :].strip():
            raise self._expected(wanted)

    def _expected(self, wanted: str) -> ExperimentError:
        rest = self._text[self._place :].strip()
        return self.fault(f"expected {wanted}, found {f'{rest!r}' if rest else 'its end'}")

    def fault(self, what: str) -> ExperimentError:
        return ExperimentError(f"--fail-if {self._text!r}: {what}")

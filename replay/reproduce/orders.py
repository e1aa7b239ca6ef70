"""The order that a claim states, and what each of its signs means in numbers.

The margins were settled before any recipe was run: one hundredth apart is apart, within a tenth is about the same, less
than half is far less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replay.experiment.faults import Faults
from replay.registry import nearest

APART, SLACK, NEAR, FAR = 0.01, 0.05, 0.10, 2.0

Term = str | int | float


def less(one: float, other: float) -> bool:
    """Whether `one` is smaller, by more than 1 % of the larger of the two."""
    return other - one > APART * max(abs(one), abs(other))


def at_most(one: float, other: float) -> bool:
    """Whether `one` is smaller, or larger by no more than 5 % of the larger of the two."""
    return one - other <= SLACK * max(abs(one), abs(other))


def far_less(one: float, other: float) -> bool:
    """Whether `one` is less than half of `other`."""
    return one * FAR < other


def near(one: float, other: float) -> bool:
    """Whether the two differ by no more than 10 % of the larger."""
    return abs(one - other) <= NEAR * max(abs(one), abs(other))


SIGNS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    "<": (less, "smaller, by more than 1 % of the larger"),
    "<=": (at_most, "smaller, or larger by no more than 5 % of the larger"),
    "<<": (far_less, "less than half"),
    "~": (near, "apart by no more than 10 % of the larger"),
    "==": (lambda one, other: one == other, "exactly the same"),
    ">": (lambda one, other: less(other, one), "larger, by more than 1 %"),
    ">=": (lambda one, other: at_most(other, one), "larger, or smaller by no more than 5 % of the larger"),
    ">>": (lambda one, other: far_less(other, one), "more than twice"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """Whose figure stands in an order: `arm`, `arm@workload`, `arm/group` or `arm@workload/group`."""

    arm: str
    workload: str | None = None
    group: str | None = None

    @classmethod
    def of(cls, text: str) -> Entry:
        place, _, group = text.partition("/")
        arm, _, workload = place.partition("@")
        return cls(arm, workload or None, group or None)


def entries(order: Sequence[Term]) -> list[Entry]:
    """Those of an order that are no numbers."""
    return [Entry.of(term) for term in order[::2] if isinstance(term, str)]


def check_order(order: Sequence[Term], path: str, faults: Faults) -> None:
    """Names (or numbers) and signs by turns."""
    if len(order) % 2 == 0:
        faults.add(path, f"has names and signs by turns, and ends with a name, not {order[-1]!r}")
    for sign in order[1::2]:
        if sign not in SIGNS:
            faults.add(path, f"there is no sign {sign!r}; {nearest(str(sign), SIGNS)}")


def keeps(order: Sequence[Term], figures: Sequence[float | None]) -> bool:
    """Whether `figures`, one for each name or number of the order, stand in it. What is not defined stands nowhere."""
    return all(
        one is not None and other is not None and SIGNS[str(sign)][0](one, other)
        for sign, one, other in zip(order[1::2], figures, figures[1:], strict=False)
    )

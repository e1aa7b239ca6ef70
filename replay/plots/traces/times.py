"""An axis of time for a trace of any span: the unit it is told in, and spans of a round length to count by."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from matplotlib.axes import Axes

MOST_SPANS = 240
FEW = 5  # requests that a span should hold on average
MICROSECOND, MILLISECOND, SECOND = 1_000, 1_000_000, 1_000_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
UNITS = ((DAY, "days"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (MILLISECOND, "ms"), (MICROSECOND, "µs"))
ROUND = [
    *(number * unit for unit in (SECOND, MINUTE) for number in (1, 2, 5, 10, 15, 30)),
    *(number * HOUR for number in (1, 2, 3, 6, 12)),
]


@dataclass(slots=True, frozen=True)
class Unit:
    """A unit of time by its nanoseconds."""

    size: int
    name: str


def unit_of(span: float) -> Unit:
    """The largest unit of which a span of nanoseconds has three, so that its axis has small numbers."""
    size, name = next((each for each in UNITS if span >= 3 * each[0]), (1, "ns"))
    return Unit(size, name)


def length_text(nanoseconds: float) -> str:
    """A length of time as people say it: `10 s`, `5 min`, `1.21 h`."""
    size, name = next((each for each in UNITS if nanoseconds >= each[0]), (1, "ns"))
    number = f"{nanoseconds / size:.3g}"
    return f"{number} {'day' if (number, name) == ('1', 'days') else name}"


def round_width(span: int, most: int = MOST_SPANS) -> int:
    """The shortest round length, in nanoseconds, of which at most so many cover a span."""
    below = (number * 10**power for power in range(9) for number in (1, 2, 5))
    days = (number * 10**power * DAY for power in count() for number in (1, 2, 5))
    for lengths in (below, ROUND, days):
        for length in lengths:
            if span <= most * length:
                return length
    raise AssertionError("days without end are long enough")


def spans_for(requests: int, most: int = MOST_SPANS) -> int:
    """In how many spans to count so many requests: a few in each, or chance alone would make some of them busy."""
    return min(max(requests // FEW, 10), most)


def time_axis(axes: Axes, span: float, remark: str) -> Unit:
    """The unit of an axis for a span of nanoseconds, which it names, and starts at zero; with a remark on its steps."""
    unit = unit_of(span)
    axes.set_xlim(0, span / unit.size)
    axes.set_xlabel(f"time since the first arrival, {unit.name} ({remark})")
    return unit

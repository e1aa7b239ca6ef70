"""Time between arrivals: how it is distributed, beside Poisson arrivals of the same rate."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from replay.plots.canvas import figure, legend, mark, scale
from replay.plots.traces.bins import bin_of
from replay.plots.traces.registry import trace_pictures
from replay.plots.traces.times import length_text, unit_of
from replay.plots.traces.words import POISSON, REQUESTS, number_text, share_text, tick_text
from replay.traces.table import Trace
from replay.traces.wording import counted

PER_DECADE = 60  # bins, whose longest gaps are within 4 % of each other
FEW = 10  # gaps of which nothing can be said
FEWEST = 0.01  # of the gaps may be shorter than an axis shows


@dataclass(slots=True, frozen=True)
class Gaps:
    """The gaps between one arrival and the next, in nanoseconds. `zero` of them are none at all; of all that there are,
    `up_to` counts those up to each of `lengths`, which rise and end with the longest."""

    count: int
    zero: int
    mean: float
    deviation: float
    lengths: NDArray[Any]
    up_to: NDArray[Any]

    @property
    def cv(self) -> float:
        """Standard deviation by mean."""
        return self.deviation / self.mean


def gaps(rows: pl.LazyFrame) -> Gaps | None:
    """The gaps of a trace; None where it has none, or all are zero."""
    between = rows.select(gap=pl.col("arrival").diff()).filter(pl.col("gap").is_not_null())
    facts = {
        "count": pl.len(),
        "zero": (pl.col("gap") == 0).sum(),
        "mean": pl.col("gap").mean(),
        "deviation": pl.col("gap").std(ddof=0),
    }
    found = between.select(**facts).collect(engine="streaming").row(0, named=True)
    if found["zero"] == found["count"]:
        return None
    counts = (
        between.filter(pl.col("gap") > 0)
        .group_by(bin=bin_of(pl.col("gap"), PER_DECADE))
        .agg(pl.len(), longest=pl.col("gap").max())
        .collect(engine="streaming")
        .sort("bin")
    )
    up_to = found["zero"] + np.cumsum(counts["len"].to_numpy())
    return Gaps(**found, lengths=counts["longest"].to_numpy(), up_to=up_to)


@trace_pictures.register("gaps")
def draw_gaps(trace: Trace) -> Figure | str:
    """On the left what most gaps are like; on the right the few long ones, where a straight line is Poisson's."""
    found = gaps(trace.rows)
    if found is None:
        return "there is no time between arrivals"
    made = figure(_title(found), 10.0, 5.2)
    left, right = made.subplots(1, 2)
    unit = unit_of(found.mean)
    lengths, shares = found.lengths / unit.size, found.up_to / found.count
    mean = found.mean / unit.size
    _shares(left, lengths, shares, found.zero / found.count, mean)
    few = found.zero + FEWEST * (found.count - found.zero)
    shortest = lengths[np.searchsorted(found.up_to, few)]  # the axis begins where there is something to see
    scale(left, "x", [min(shortest, mean / 20), max(lengths[-1], 5 * mean)], f"gap, {unit.name}")
    left.xaxis.set_major_formatter(tick_text)
    _tail(right, lengths, shares, found, mean)
    right.set_xlabel(f"gap, {unit.name}")
    entries = [
        mark("this trace", marker="", linestyle="-", color=REQUESTS),
        mark(
            f"Poisson arrivals with the same mean, {length_text(found.mean)}", marker="", linestyle="--", color=POISSON
        ),
    ]
    legend(made, entries, 2, None)
    return made


def _title(found: Gaps) -> str:
    stray = 1 / sqrt(found.count)  # of the estimate, if arrivals are Poisson's
    cv = f"CV {found.cv:.2f}, Poisson 1 ± {stray:.2f}" if stray >= 0.005 else f"CV {found.cv:.2f}, Poisson 1.00"
    if found.count < FEW:
        title = f"{counted(found.count, 'gap')} between arrivals: too few to compare with Poisson"
    elif abs(found.cv - 1) <= 2 * stray:
        title = f"The gaps between arrivals vary as Poisson's do: {cv}"
    elif found.cv > 1:
        title = f"Burstier than Poisson: the gaps between arrivals vary {number_text(found.cv)} times as much ({cv})"
    else:
        title = f"More even than Poisson: the gaps between arrivals vary less ({cv})"
    ties = f"; {share_text(found.zero / found.count)} of them are 0" if found.zero else ""
    return title + ties


def _shares(axes: Axes, lengths: NDArray[Any], shares: NDArray[Any], zero: float, mean: float) -> None:
    """Which share of the gaps is up to each length; those of none at all are where the line starts."""
    start = min(lengths[0], mean / 20) / 1e3
    axes.step([start, *lengths, lengths[-1] * 1e6], [zero, *shares, 1.0], where="post", color=REQUESTS, linewidth=1.8)
    curve = np.geomspace(start, max(lengths[-1], 5 * mean) * 10, 500)
    axes.plot(curve, 1 - np.exp(-curve / mean), color=POISSON, linewidth=1.2, linestyle="--")
    ties = f", of which {share_text(zero)} are 0: at the same instant" if zero else ""
    axes.set(ylim=(0, 1.02), ylabel="share of gaps up to this long", title=f"All gaps{ties}")


def _tail(axes: Axes, lengths: NDArray[Any], shares: NDArray[Any], found: Gaps, mean: float) -> None:
    """Which share is longer than each length, down to a single gap."""
    longer = 1 - shares
    one = 1 / found.count
    heights = np.append(1 - found.zero / found.count, longer[:-1])
    axes.step([0, *lengths], [*heights, one / 2], where="post", color=REQUESTS, linewidth=1.8)
    end = max(lengths[-1] * 1.05, mean * 1.5)
    curve = np.linspace(0, end, 300)
    axes.plot(curve, np.exp(-curve / mean), color=POISSON, linewidth=1.2, linestyle="--")
    axes.set(xlim=(0, end), ylabel="share of gaps longer than this (log scale)", title="The longest gaps")
    axes.set_yscale("log")
    axes.set_ylim(min(one / 1.5, 0.3), 1.3)
    axes.yaxis.set_major_formatter(tick_text)
    axes.yaxis.set_minor_formatter(NullFormatter())

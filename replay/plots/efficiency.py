"""Fairness against efficiency: what evenness between users costs in tokens a second, or does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.figure import Figure

from replay.metrics.arms import Arm
from replay.plots.canvas import figure
from replay.plots.plane import against_throughput, arms_legend, draw_arms, scale_both, swept
from replay.plots.registry import plots
from replay.plots.view import View

ROOM = 0.15
"""Of the span of Jain indices, below the lowest and above the highest."""


@plots.register("efficiency")
def efficiency(view: View) -> Figure | None:
    """A mark for each arm: the Jain index, and the mean slowdown of the user who is slowed down the most, against
    output tokens/s. None where fewer than two users are known: nothing is uneven."""
    if view.requests["user"].drop_nulls().n_unique() < 2:
        return None
    made = figure("Fairness between users against throughput: which policy is even, and at what cost", 10.6, 5.2)
    even, worst = made.subplots(1, 2)
    indices = against_throughput(view, view.arms, lambda arm: view.values.repeats(arm, "jain", "value"))
    scale_both(even, indices.values(), "Jain index of the users' mean slowdowns")
    draw_arms(even, view, indices)
    even.set_title("How evenly users are slowed down\n(upper right is better)")
    if indices:
        even.set_ylim(*index_limits([value for one in indices.values() for value in one.all_up]))
        even.axhline(1.0, color="#bbbbbb", linewidth=0.8, zorder=0)
    slowest = worst_slowdowns(view)
    slowdowns = against_throughput(view, view.arms, lambda arm: slowest[arm])
    scale_both(worst, slowdowns.values(), "mean slowdown of that user, times")
    draw_arms(worst, view, slowdowns)
    worst.set_title("How the user fares who is slowed down the most\n(lower right is better)")
    arms_legend(made, view, view.arms, *swept(view))
    return made


def worst_slowdowns(view: View) -> Mapping[Arm, list[float]]:
    """The largest of the users' mean slowdowns, in each repeat that has one."""
    known = view.requests.select("cell", "user", "slowdown").drop_nulls()
    means = known.group_by("cell", "user").agg(pl.col("slowdown").mean())
    found = dict(means.group_by("cell").agg(pl.col("slowdown").max()).iter_rows())
    return {arm: [found[name] for name in arm.names if name in found] for arm in view.arms}


def index_limits(values: Sequence[float]) -> tuple[float, float]:
    """From below the lowest index to 1, which is even: most lie near to it, so that an axis from zero shows nothing."""
    lowest = min(values, default=0.0)
    room = ROOM * max(1 - lowest, 0.05)
    return max(lowest - room, 0.0), 1 + room

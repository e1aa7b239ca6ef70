"""Fairness against efficiency: what evenness between users costs in tokens a second, or does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replay.metrics.arms import Arm
from replay.plots.canvas import figure
from replay.plots.plane import Spot, arms_legend, draw_arms, scale_both, spot, swept
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
    indices = _spots(view, lambda arm: view.values.repeats(arm, "jain", "value"))
    scale_both(even, indices.values(), "Jain index of the users' mean slowdowns")
    draw_arms(even, view, indices)
    even.set_title("How evenly users are slowed down\n(upper right is better)")
    _index_axis(even, [value for one in indices.values() for value in one.all_up])
    slowdowns = _spots(view, lambda arm: _worst(view, arm))
    scale_both(worst, slowdowns.values(), "mean slowdown of that user, times")
    draw_arms(worst, view, slowdowns)
    worst.set_title("How the user fares who is slowed down the most\n(lower right is better)")
    arms_legend(made, view, view.arms, *swept(view))
    return made


def _spots(view: View, height: Callable[[Arm], Sequence[float]]) -> dict[Arm, Spot]:
    found = {arm: spot(view.values.repeats(arm, "output_throughput", "value"), height(arm)) for arm in view.arms}
    return {arm: one for arm, one in found.items() if one is not None}


def _worst(view: View, arm: Arm) -> list[float]:
    """The largest of the users' mean slowdowns, in each repeat that has one."""
    known = view.rows(arm).drop_nulls(["user", "slowdown"])
    means = known.group_by("repeat", "user").agg(pl.col("slowdown").mean())
    return means.group_by("repeat").agg(pl.col("slowdown").max()).sort("repeat")["slowdown"].to_list()


def _index_axis(axes: Axes, values: Sequence[float]) -> None:
    """From below the lowest index to 1, which is even: most lie near to it, so that an axis from zero shows nothing."""
    if values:
        room = ROOM * max(1 - min(values), 0.05)
        axes.set_ylim(max(min(values) - room, 0.0), 1 + room)
        axes.axhline(1.0, color="#bbbbbb", linewidth=0.8, zorder=0)

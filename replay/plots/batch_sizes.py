"""Batch sizes that adapt, over time: the size in force and who was resident, the queue, KV use and the steps' time.

What a rule goes by stands under what it decided. It does not know the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from replay.metrics.arms import Arm
from replay.metrics.contrasts import base_policy
from replay.plots.canvas import INK, figure, legend, no_data
from replay.plots.registry import plots
from replay.plots.view import INVALID, View
from replay.results import Cell

ROWS = (
    ("residents", "requests"),
    ("waiting", "waiting requests"),
    ("kv", "KV blocks used, %"),
    ("decoding", "decoding step, ms"),
)
HEIGHTS = (1.9, 1.0, 1.0, 1.0)
BINS = 400
"""Points of a line: more cannot be seen, and a long run has a hundred thousand steps."""
SIZE: dict[str, Any] = {"color": INK, "linewidth": 1.4}
RESIDENTS_ALPHA = 0.35


@plots.register("batch_sizes")
def batch_sizes(view: View) -> Figure | None:
    """A column for each setting whose size adapts, under one policy: fifo, or the first. None where no size adapts."""
    adapting = [arm for arm in view.arms if arm.shown.adapts]
    if not adapting:
        return None
    policy = base_policy(adapting).policy
    found = [arm for arm in adapting if arm.policy == policy]
    width = max(7.0, 0.6 + 3.9 * len(found))
    made = figure(f"Batch sizes that adapt, with residents, queue and KV use over time, under {policy}", width, 8.4)
    grid = made.subplots(len(ROWS), len(found), sharex=True, sharey="row", squeeze=False, height_ratios=HEIGHTS)
    tops = dict.fromkeys((name for name, _ in ROWS), 1.0)
    for column, arm in enumerate(found):
        colour = view.palette(arm.setting, one_replay=True)[policy]
        line = over_time(arm.shown)
        for axes, (name, _) in zip(grid[:, column], ROWS, strict=True):
            top = _panel(axes, line, name, colour)
            tops[name] = max(tops[name], top)
        grid[0][column].set_title(_heading(arm))
        grid[-1][column].set_xlabel("time since the trace began, s")
    for row, (name, label) in enumerate(ROWS):
        grid[row][0].set_ylabel(label)
        grid[row][0].set_ylim(0, 1.05 * tops[name])  # of all panels: they share it
        grid[row][0].yaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    legend(made, _legend(view, found, policy), 3, view.remark([arm.shown for arm in found]))
    return made


def over_time(cell: Cell) -> pl.DataFrame:
    """Time, size in force, residents, waiting, KV use (%) and the time of a decoding step (ms), over at most `BINS`
    bins: the last size of each, and the mean of the others."""
    kv = pl.col("used_blocks") / pl.lit(cell.blocks, dtype=pl.Float64) * 100
    took = pl.when(pl.col("decodes") > 0).then((pl.col("end") - pl.col("start")) * 1000)
    steps = cell.table("steps").sort("start")
    first, last = steps.select(pl.col("start").min(), pl.col("end").max()).row(0)
    binned = (
        steps.group_by(((pl.col("start") - first) / ((last or 0) - (first or 0)) * BINS).floor(), maintain_order=True)
        .agg(
            time=pl.col("start").first(),
            size=pl.col("slots").last().cast(pl.Float64),
            residents=pl.col("running").mean(),
            waiting=pl.col("waiting").mean(),
            kv=kv.mean(),
            decoding=took.mean(),
        )
        .drop("start")
    )
    ended = binned.tail(1).with_columns(time=pl.lit(last, dtype=pl.Float64))  # what it was last, it was to the end
    return pl.concat([binned, ended])


def _panel(axes: Axes, line: pl.DataFrame, name: str, colour: str) -> float:
    """Draw one column of `line`, of residents with the size in force; the highest value."""
    known = line.drop_nulls(name)
    if known.is_empty():
        no_data(axes)
        return 0.0
    highest = float(known.select(pl.col(name).max()).item())
    if name == "residents":
        axes.fill_between(known["time"], known[name], step="post", color=colour, alpha=RESIDENTS_ALPHA, linewidth=0)
        axes.plot(known["time"], known["size"], drawstyle="steps-post", **SIZE)
        return max(highest, float(known.select(pl.col("size").max()).item()))
    axes.plot(known["time"], known[name], drawstyle="steps-post", color=colour, linewidth=1.1)
    return highest


def _heading(arm: Arm) -> str:
    return arm.setting if arm.shown.valid else f"{arm.setting}\ngrey: invalid"


def _legend(view: View, found: Sequence[Arm], policy: str) -> list[Line2D | Patch]:
    colour = view.colour(policy) if any(arm.shown.valid for arm in found) else INVALID
    return [
        Line2D([], [], label="batch size in force", **SIZE),
        Patch(facecolor=colour, alpha=RESIDENTS_ALPHA, label="resident requests"),
        Line2D([], [], label="means over short bins of time", color=colour, linewidth=1.1),
    ]

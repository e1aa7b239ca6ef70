"""Running and waiting requests and KV use over time."""

from __future__ import annotations

import polars as pl
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from replay.metrics.arms import Arm
from replay.plots.canvas import dashes, figure, legend, no_data, widths
from replay.plots.registry import plots
from replay.plots.view import View

ROWS = (("running", "running requests"), ("waiting", "waiting requests"), ("kv", "KV blocks used, %"))
BINS = 400
"""Points of a line: more cannot be seen, and a long run has a hundred thousand steps."""


@plots.register("timeline")
def timeline(view: View) -> Figure:
    """A column for each mode, a line for each policy (its first valid repeat); averages over short bins of time."""
    width = max(7.0, 0.6 + 3.6 * len(view.settings))
    made = figure("Running and waiting requests, and how full the KV pool is", width, 7.6)
    grid = made.subplots(len(ROWS), len(view.settings), sharex=True, sharey="row", squeeze=False)
    tops = dict.fromkeys((name for name, _ in ROWS), 1.0)
    for column, setting in enumerate(view.settings):
        lines = [_line(arm) for policy in view.policies if (arm := view.arm(setting, policy)) is not None]
        points = pl.concat(lines).to_pandas()
        for axes, (name, _) in zip(grid[:, column], ROWS, strict=True):
            if points[name].notna().any():
                tops[name] = max(tops[name], points[name].max())
                sns.lineplot(
                    points,
                    x="time",
                    y=name,
                    hue="policy",
                    hue_order=view.policies,
                    palette=view.palette(setting, one_replay=True),
                    size="policy",
                    sizes=widths(view.policies, thinnest=1.1, span=1.3),
                    style="policy",
                    style_order=view.policies,
                    dashes=dashes(view.policies),
                    markers=False,
                    alpha=0.85,
                    estimator=None,
                    drawstyle="steps-post",
                    legend=False,
                    ax=axes,
                )
            else:
                no_data(axes)
            axes.set(xlabel="", ylabel="")
        grid[0][column].set_title(view.heading(setting, one_replay=True))
        grid[-1][column].set_xlabel("time since the trace began, s")
    for row, (name, label) in enumerate(ROWS):
        grid[row][0].set_ylabel(label)
        grid[row][0].set_ylim(0, 1.05 * tops[name])  # of all panels: they share it
        grid[row][0].yaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
    entries = view.legend(linewidth=1.6, marker=None)
    for entry, pattern in zip(entries, dashes(view.policies).values(), strict=True):
        entry.set(linestyle=(0, pattern) if pattern else "-")
    legend(made, entries, len(view.policies), view.remark([arm.shown for arm in view.arms]))
    return made


def _line(arm: Arm) -> pl.DataFrame:
    """Policy, time and the three values, averaged over at most `BINS` bins; all of them end on the ground."""
    cell = arm.shown
    kv = pl.col("used_blocks") / pl.lit(cell.blocks, dtype=pl.Float64) * 100
    counts = pl.col("running", "waiting").cast(pl.Float64)
    steps = cell.table("steps").sort("start").select("start", "end", counts, kv=kv)
    first, last = steps.select(pl.col("start").min(), pl.col("end").max()).row(0)
    binned = (
        steps.group_by(((pl.col("start") - first) / ((last or 0) - (first or 0)) * BINS).floor(), maintain_order=True)
        .agg(pl.col("start").first().alias("time"), pl.col("running", "waiting", "kv").mean())
        .select("time", "running", "waiting", "kv")
    )
    ground = pl.DataFrame({"time": last, "running": 0.0, "waiting": 0.0, "kv": 0.0 if cell.blocks else None})
    ended = pl.concat([binned, ground.cast(binned.schema).head(len(steps))])
    return ended.select(pl.lit(arm.policy).alias("policy"), pl.all())

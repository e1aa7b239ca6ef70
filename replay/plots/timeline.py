"""Running and waiting requests and KV use over time."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from replay.metrics.arms import Arm
from replay.plots.canvas import figure, no_data
from replay.plots.registry import plots
from replay.plots.view import View

ROWS = (("running", "running requests"), ("waiting", "waiting requests"), ("kv", "KV blocks used, %"))
BINS = 400
"""Points of a line: more cannot be seen, and a long run has a hundred thousand steps."""


@plots.register("timeline")
def timeline(view: View) -> Figure:
    """A column for each mode, a line for each policy (its first repeat); averages over short bins of time."""
    width = max(7.0, 0.6 + 3.6 * len(view.settings))
    made = figure("Who runs, who waits, and how full the KV pool is", width, 7.6)
    grid = made.subplots(len(ROWS), len(view.settings), sharex=True, sharey="row", squeeze=False)
    for column, setting in enumerate(view.settings):
        seen = {name: False for name, _ in ROWS}
        for policy in view.policies:
            if (arm := view.arm(setting, policy)) is None:
                continue
            line = _line(arm)
            for row, (name, _) in enumerate(ROWS):
                points = line.drop_nulls(name)
                if len(points):
                    seen[name] = True
                    grid[row][column].step(
                        points["time"], points[name], where="post", color=view.colour(policy), linewidth=1.3, alpha=0.85
                    )
        for row, (name, _) in enumerate(ROWS):
            grid[row][column].set_ylim(bottom=0)
            if not seen[name]:
                no_data(grid[row][column])
        grid[0][column].set_title(setting)
        grid[-1][column].set_xlabel("time since the trace began, s")
    for row, (_, label) in enumerate(ROWS):
        grid[row][0].set_ylabel(label)
    made.legend(
        handles=view.legend(linestyle="-", linewidth=2, marker=None),
        loc="outside lower center",
        ncols=max(len(view.policies), 1),
        title=view.remark or None,
    )
    return made


def _line(arm: Arm) -> pl.DataFrame:
    """Time and the three values, averaged over at most `BINS` bins; it returns to the ground at the last step's end."""
    cell = arm.cells[0]
    steps = cell.table("steps").sort("start")
    kv = pl.col("used_blocks") / pl.lit(cell.blocks, dtype=pl.Float64) * 100
    values = steps.select("start", "end", pl.col("running").cast(pl.Float64), pl.col("waiting").cast(pl.Float64), kv=kv)
    if values.is_empty():
        return values.select(pl.col("start").alias("time"), "running", "waiting", "kv")
    first, last = values.select(pl.col("start").min(), pl.col("end").max().alias("last")).row(0)
    width = (last - first) / BINS or 1.0
    binned = (
        values.group_by(((pl.col("start") - first) / width).floor().alias("bin"), maintain_order=True)
        .agg(pl.col("start").first().alias("time"), pl.col("running", "waiting", "kv").mean())
        .select("time", "running", "waiting", "kv")
    )
    ground = pl.DataFrame({"time": last, "running": 0.0, "waiting": 0.0, "kv": 0.0 if cell.blocks else None})
    return pl.concat([binned, ground.cast(binned.schema)])

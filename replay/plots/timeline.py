"""Running and waiting requests, KV use and, where there were any, evictions and swaps over time."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from replay.metrics.arms import Arm
from replay.plots.canvas import blocks, dashes, figure, legend, no_data, rows_of, widths
from replay.plots.registry import plots
from replay.plots.view import View

ROWS = {"running": "running requests", "waiting": "waiting requests", "kv": "KV blocks used, %"}
SO_FAR = {"evictions": "evictions so far", "swapped": "blocks swapped so far"}
"""Drawn where some cell has any: a step of such a line is an eviction, a slope is thrash."""
ACROSS = 4
BINS = 400
"""Points of a line: more cannot be seen, and a long run has a hundred thousand steps."""


@plots.register("timeline")
def timeline(view: View) -> Figure:
    """A column for each mode, a line for each policy (its first valid repeat); averages over short bins of time."""
    lines = {arm: _line(arm) for arm in view.arms}
    found = pl.concat(lines.values())
    rows = ROWS | {name: label for name, label in SO_FAR.items() if _highest(found, name) > 0}
    full = "how full the KV pool is"
    told = f", and {full}" if len(rows) == len(ROWS) else f", {full}, and evictions from it"
    lined_up, columns = rows_of(len(view.settings), ACROSS)
    height = 1.0 + lined_up * (0.2 + 2.1 * len(rows))
    made = figure(f"Running and waiting requests{told}", max(7.0, 0.6 + 3.6 * columns), height)
    grid = blocks(made, len(rows), len(view.settings), ACROSS, one_x=True)
    patterns, thickness = dashes(view.policies), widths(view.policies, thinnest=1.1, span=1.3)
    for column, setting in enumerate(view.settings):
        colours = view.palette(setting, one_replay=True)
        arms = [arm for policy in view.policies if (arm := view.arm(setting, policy)) is not None]
        for axes, name in zip((row[column] for row in grid), rows, strict=True):
            drawn = [arm for arm in arms if lines[arm][name].count() > 0]
            for arm in drawn:
                pattern = patterns[arm.policy]
                style: dict[str, Any] = {
                    "color": colours[arm.policy],
                    "linewidth": thickness[arm.policy],
                    "alpha": 0.85,
                }
                dash = (0, pattern) if pattern else "-"
                line = lines[arm].drop_nulls(name)
                axes.plot(line["time"], line[name], drawstyle="steps-post", linestyle=dash, **style)
            if not drawn:
                no_data(axes)
        grid[0][column].set_title(view.heading(setting, one_replay=True))
        grid[-1][column].set_xlabel("time since the trace began, s")
    for row, (name, label) in enumerate(rows.items()):
        for axes in grid[row][::columns]:
            axes.set_ylabel(label)
        grid[row][0].set_ylim(0, 1.05 * max(_highest(found, name), 1.0))  # of all panels: they share it
        grid[row][0].yaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
        grid[row][0].yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    entries = view.legend(linewidth=1.6, marker=None)
    for entry, pattern in zip(entries, patterns.values(), strict=True):
        entry.set(linestyle=(0, pattern) if pattern else "-")
    legend(made, entries, len(view.policies), view.remark([arm.shown for arm in view.arms]))
    return made


def _highest(found: pl.DataFrame, name: str) -> float:
    return float(found.select(pl.col(name).max().fill_null(0.0)).item()) if len(found) else 0.0


def _line(arm: Arm) -> pl.DataFrame:
    """Time and the values, over at most `BINS` bins: counts and KV use are averages and end on the ground, also where
    the engine idles for longer than a bin; what is told so far is what it was at the end of each bin."""
    cell = arm.shown
    kv = pl.col("used_blocks") / pl.lit(cell.blocks, dtype=pl.Float64) * 100
    steps = (
        cell.table("steps")
        .sort("start")
        .select(
            "start",
            "end",
            pl.col("running", "waiting").cast(pl.Float64),
            kv=kv,
            evictions=pl.col("evicted").cum_sum().cast(pl.Float64),
            swapped=(pl.col("swapped_out") + pl.col("swapped_in")).cum_sum().cast(pl.Float64),
            stay=(pl.col("running") - pl.col("admitted")).clip(0).shift(-1).cast(pl.Float64),  # to the next step
        )
    )
    first, last = steps.select(pl.col("start").min(), pl.col("end").max()).row(0)
    length = ((last or 0) - (first or 0)) / BINS
    binned = (
        steps.group_by(((pl.col("start") - first) / length).floor(), maintain_order=True)
        .agg(pl.col("start").first().alias("time"), *map(_average, ROWS), pl.col(*SO_FAR).last())
        .select("time", *ROWS, *SO_FAR)
    )
    idle = steps.filter(pl.col("start").shift(-1) - pl.col("end") > length).select(
        pl.col("end").alias("time"),
        pl.col("stay").alias("running"),
        pl.col("waiting"),
        pl.when(pl.col("stay") > 0).then("kv").otherwise(pl.col("kv") * 0).alias("kv"),
        pl.col(*SO_FAR),
    )
    ended = binned.tail(1).with_columns(time=pl.lit(last), running=0.0, waiting=0.0, kv=pl.col("kv") * 0)
    return pl.concat([binned, idle.cast(binned.schema), ended.cast(binned.schema)]).sort("time", maintain_order=True)


def _average(name: str) -> pl.Expr:
    """Over the time that steps take; null where it is of none."""
    value, seconds = pl.col(name), (pl.col("end") - pl.col("start")).clip(1e-9)
    return pl.when(value.count() > 0).then((value * seconds).sum() / seconds.sum()).alias(name)

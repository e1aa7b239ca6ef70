"""Slowdown by length of the answer: whether short requests pay for long ones, or long ones for short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replay.plots.canvas import figure, legend, no_data, panels, rows_of, scale, widths
from replay.plots.registry import plots
from replay.plots.view import View

ACROSS = 3
AWAY = 0.3  # of the width of a bin: within it each policy has its place, so that no mark hides another


@plots.register("length_slowdown")
def length_slowdown(view: View) -> Figure | None:
    """A panel for each mode, a line for each policy over the bins of the trace's output lengths. None where no slowdown
    is known, or where all answers are in one bin."""
    bins = _bins(view)
    if len(bins) < 2 or view.requests["slowdown"].count() == 0:
        return None
    rows, columns = rows_of(len(view.settings), ACROSS)
    title = "How much longer requests take than alone, by length of the answer (lower is better)"
    width = max(7.0, 0.8 + columns * max(3.6, 0.95 * len(bins)))
    made = figure(title, width, 2.0 + 3.5 * rows)
    grid = panels(made, len(view.settings), ACROSS, xlabel="output tokens (requests)", ylabel="")
    drawn: list[float] = []
    for axes, setting in zip(grid, view.settings, strict=True):
        axes.set_title(view.heading(setting))
        drawn += _panel(axes, view, setting, list(bins))
    grid[0].set_xticks(
        range(len(bins)), [f"{name.removesuffix(' tokens')}\n({count:,})" for name, count in bins.items()]
    )
    grid[0].set_xlim(-0.5, len(bins) - 0.5)
    for place, axes in enumerate(grid):
        scale(axes, "y", drawn, "" if place % columns else "mean slowdown, times")
        axes.grid(visible=False, axis="x")
    entries = view.legend(linestyle="-", linewidth=1.6, markersize=7)
    legend(made, entries, len(entries), view.remark())
    return made


def _bins(view: View) -> dict[str, int]:
    """The trace's bins, shortest answers first, and how many requests are in each."""
    one = view.requests.filter(pl.col("cell") == view.arms[0].names[0]).drop_nulls("group_length")
    counts = one.group_by("place_length", "group_length").len().sort("place_length")
    return dict(counts.select("group_length", "len").iter_rows())


def _panel(axes: Axes, view: View, setting: str, bins: Sequence[str]) -> list[float]:
    """Draw one mode; the mean slowdowns, and the ends of the repeats."""
    drawn: list[float] = []
    colours, thickness = view.palette(setting), widths(view.policies, thinnest=1.2, span=0.8)
    for rank, policy in enumerate(view.policies):
        if (arm := view.arm(setting, policy)) is None:
            continue
        away = 2 * AWAY * ((rank + 0.5) / len(view.policies) - 0.5)
        found = [view.values.repeats(arm, "slowdown", "mean", "length", name) for name in bins]
        points = [(place + away, sum(values) / len(values)) for place, values in enumerate(found) if values]
        if not points:
            continue
        style: dict[str, Any] = {"color": colours[policy], "marker": view.marker(policy), "alpha": 0.9}
        axes.plot(*zip(*points, strict=True), **style, linewidth=thickness[policy], markersize=6.5)
        for place, values in enumerate(found):
            if len(values) > 1:
                axes.plot([place + away] * 2, [min(values), max(values)], color=colours[policy], linewidth=0.8)
            drawn += values
    if not drawn:
        no_data(axes)
    return drawn

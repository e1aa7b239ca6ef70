"""Latency distributions: which share of all requests was at least so fast."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from replay.plots.canvas import blocks, figure, legend, mark, no_data, rows_of, scale, widths
from replay.plots.registry import plots
from replay.plots.view import View

ROWS = (("ttft", "time to first token, ms"), ("e2e", "end-to-end time, ms"), ("tpot", "time per token, ms"))

ACROSS = 4
POINTS = 250
"""Steps of a curve: more cannot be seen, and make the SVG large."""

Numbers = NDArray[np.float64]


@plots.register("distributions")
def distributions(view: View) -> Figure:
    """Empirical distributions over all requests: a curve that ends below 1 belongs to requests without an answer."""
    lines, columns = rows_of(len(view.settings), ACROSS)
    title = "How many requests were at least this fast (higher and further left is better)"
    made = figure(title, max(7.0, 0.6 + 3.2 * columns), 0.8 + 7.8 * lines)
    grid = blocks(made, len(ROWS), len(view.settings), ACROSS, one_x=False)
    for row, (metric, label) in enumerate(ROWS):
        drawn: list[float] = []
        for axes, setting in zip(grid[row], view.settings, strict=True):
            drawn += _panel(axes, view, metric, setting)
        for axes in grid[row]:
            scale(axes, "x", drawn, label)
        for axes in grid[row][::columns]:
            axes.set_ylabel("share of requests")
    for axes, setting in zip(grid[0], view.settings, strict=True):
        axes.set_title(view.heading(setting))
    entries = [*view.legend(linestyle="-", linewidth=1.8, markersize=5), mark("mark: median", marker="o", markersize=5)]
    legend(made, entries, len(entries), view.remark())
    return made


def _panel(axes: Axes, view: View, metric: str, setting: str) -> list[float]:
    """Draw one metric in one mode, the medians marked; the values' ends, in milliseconds."""
    ends: list[float] = []
    colours = view.palette(setting)
    for policy, thickness in widths(view.policies).items():
        if (arm := view.arm(setting, policy)) is None:
            continue
        rows = view.rows(arm)
        values = rows[metric].drop_nulls().sort().to_numpy() * 1000
        if not len(values):
            continue
        axes.plot(*curve(values, len(rows)), color=colours[policy], linewidth=thickness, drawstyle="steps-post")
        style: dict[str, Any] = {"marker": view.marker(policy), "color": colours[policy], "markersize": 5}
        axes.plot(np.median(values), len(values) / len(rows) / 2, **style)
        ends += [float(values[0]), float(values[-1])]
    axes.set_ylim(0, 1.02)
    if not ends:
        no_data(axes)
    return ends


def curve(values: Numbers, requests: int) -> tuple[Numbers, Numbers]:
    """Of sorted values, and which share of the requests was at least so fast: from 0 up to the share that has a value,
    in at most `POINTS` steps, the first and the last among them."""
    places = np.unique(np.linspace(0, len(values) - 1, min(len(values), POINTS)).round().astype(np.int64))
    return np.append(values[0], values[places]), np.append(0.0, (places + 1) / requests)

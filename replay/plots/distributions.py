"""Latency distributions: which share of all requests had less than so much."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replay.plots.canvas import figure, no_data, scale
from replay.plots.registry import plots
from replay.plots.view import View

ROWS = (("ttft", "time to first token, ms"), ("e2e", "end-to-end time, ms"), ("tpot", "time per token, ms"))


@plots.register("distributions")
def distributions(view: View) -> Figure:
    """Empirical distributions over all requests: a curve that ends below 1 belongs to requests without an answer."""
    width = max(7.0, 0.6 + 3.2 * len(view.settings))
    made = figure("Which share of requests had less than so much (further left is better)", width, 8.6)
    grid = made.subplots(len(ROWS), len(view.settings), sharex="row", sharey=True, squeeze=False)
    for row, (metric, label) in enumerate(ROWS):
        drawn = [
            value
            for axes, setting in zip(grid[row], view.settings, strict=True)
            for value in _panel(axes, view, metric, setting)
        ]
        for axes in grid[row]:
            scale(axes, "x", drawn)
            axes.set_xlabel(label)
            axes.set_ylim(0, 1.02)
        grid[row][0].set_ylabel("share of requests")
    for axes, setting in zip(grid[0], view.settings, strict=True):
        axes.set_title(setting)
    made.legend(
        handles=view.legend(linestyle="-", linewidth=1.8, markersize=5),
        loc="outside lower center",
        ncols=max(len(view.policies), 1),
        title=view.remark or None,
    )
    return made


def _panel(axes: Axes, view: View, metric: str, setting: str) -> list[float]:
    """Draw one metric in one mode; the values, in milliseconds."""
    drawn: list[float] = []
    for policy in view.policies:
        if (arm := view.arm(setting, policy)) is None:
            continue
        rows = view.rows(arm)
        values = np.sort(rows[metric].drop_nulls().to_numpy()) * 1000
        if not len(values):
            continue
        shares = np.arange(1, len(values) + 1) / len(rows)
        axes.step(
            np.concatenate([values[:1], values]),
            np.concatenate([[0.0], shares]),
            where="post",
            color=view.colour(policy),
            linewidth=1.6,
            alpha=0.9,
        )
        middle = (len(values) - 1) // 2
        axes.plot(values[middle], shares[middle], marker=view.marker(policy), color=view.colour(policy), markersize=5)
        drawn += [float(values[0]), float(values[-1])]
    if not drawn:
        no_data(axes)
    return drawn

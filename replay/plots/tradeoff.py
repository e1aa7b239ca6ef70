"""Throughput against latency: what a mode or a setting buys, and what it costs."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replay.plots.canvas import figure
from replay.plots.plane import LATENCIES, arms_legend, draw_arms, scale_both, swept, tails
from replay.plots.registry import plots
from replay.plots.view import View


@plots.register("tradeoff")
def tradeoff(view: View) -> Figure:
    """One mark for each arm; sizes that were swept are joined by a line."""
    made = figure("Throughput against latency (lower right is better)", 13.0, 5.2)
    grid = made.subplots(1, len(LATENCIES), squeeze=False)[0]
    for axes, (metric, label) in zip(grid, LATENCIES, strict=True):
        _panel(axes, view, metric, label)
    arms_legend(made, view, view.arms, *swept(view))
    return made


def _panel(axes: Axes, view: View, metric: str, label: str) -> None:
    spots = tails(view, view.arms, metric)
    scale_both(axes, spots.values(), label)
    draw_arms(axes, view, spots)

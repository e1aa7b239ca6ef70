"""Throughput against latency: what a mode or a setting buys, and what it costs."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replay.plots.canvas import figure
from replay.plots.plane import arms_legend, draw_arms, scale_both, spot, swept
from replay.plots.registry import plots
from replay.plots.view import View

PANELS = (("ttft", "TTFT p95, ms"), ("tpot", "TPOT p95, ms"), ("e2e", "end-to-end p95, ms"))


@plots.register("tradeoff")
def tradeoff(view: View) -> Figure:
    """One mark for each arm; sizes that were swept are joined by a line."""
    made = figure("Throughput against latency (lower right is better)", 13.0, 5.2)
    grid = made.subplots(1, len(PANELS), squeeze=False)[0]
    for axes, (metric, label) in zip(grid, PANELS, strict=True):
        _panel(axes, view, metric, label)
    arms_legend(made, view, view.arms, *swept(view))
    return made


def _panel(axes: Axes, view: View, metric: str, label: str) -> None:
    spots = {}
    for arm in view.arms:
        latencies = [1000 * value for value in view.values.repeats(arm, metric, "p95")]
        if (found := spot(view.values.repeats(arm, "output_throughput", "value"), latencies)) is not None:
            spots[arm] = found
    scale_both(axes, spots.values(), label)
    draw_arms(axes, view, spots)

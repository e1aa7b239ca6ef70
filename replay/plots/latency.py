"""Time to first token and time per token, by policy and mode: the median, and how far the tail reaches."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from replay.metrics.notation import number
from replay.plots.canvas import FAINT, INK, blocks, figure, legend, mark, rows_of, scale
from replay.plots.registry import plots
from replay.plots.view import View

ROWS = (("ttft", "time to first token, ms"), ("tpot", "time per token, ms"))
ACROSS = 4
STATISTICS = ("p50", "p95", "p99")
LABEL_POINTS = 10  # to the right of a mark's middle: past the half of the widest, p95's bar


@plots.register("latency")
def latency(view: View) -> Figure:
    """A column of panels for each mode; within it each policy has its place."""
    lines, columns = rows_of(len(view.settings), ACROSS)
    width = max(7.0, 1.2 + columns * max(2.4, 0.78 * len(view.policies)))
    title = "How long until the first token, and from token to token (lower is better)"
    made = figure(title, width, 0.8 + 6.0 * lines)
    grid = blocks(made, len(ROWS), len(view.settings), ACROSS, one_x=True)
    for row, (metric, label) in enumerate(ROWS):
        drawn = [
            value
            for column, setting in enumerate(view.settings)
            for value in _panel(grid[row][column], view, metric, setting)
        ]
        for column, axes in enumerate(grid[row]):
            scale(axes, "y", drawn, "" if column % columns else label)
    for axes, setting in zip(grid[0], view.settings, strict=True):
        axes.set_title(view.heading(setting))
    legend(made, _legend(), 3, view.remark())
    return made


def _panel(axes: Axes, view: View, metric: str, setting: str) -> list[float]:
    """Draw one mode; the values, in milliseconds."""
    drawn: list[float] = []
    colours = view.palette(setting)
    for place, policy in enumerate(view.policies):
        arm = view.arm(setting, policy)
        found = [view.values.value(arm, metric, statistic) if arm else None for statistic in STATISTICS]
        values = [value * 1000 for value in found if value is not None]
        if len(values) < len(STATISTICS):
            _absent(axes, place)
            continue
        colour = colours[policy]
        axes.plot([place, place], [values[0], values[2]], color=colour, linewidth=2, alpha=0.45, solid_capstyle="round")
        axes.plot(place, values[0], marker=view.marker(policy), color=colour, markersize=9)
        axes.plot(place, values[1], marker="_", color=colour, markersize=13, markeredgewidth=2.2)
        axes.plot(place, values[2], marker="_", color=colour, markersize=8, markeredgewidth=1.4)
        axes.annotate(
            number(values[0]),
            (place, values[0]),
            xytext=(LABEL_POINTS, 0),
            textcoords="offset points",
            size=7,
            color=INK,
            va="center",
        )
        drawn += values
    axes.set_xticks(range(len(view.policies)), view.policies, rotation=30, ha="right")
    axes.set_xlim(-0.5, len(view.policies) - 0.2)
    axes.grid(visible=False, axis="x")
    return drawn


def _absent(axes: Axes, place: int) -> None:
    axes.text(
        place,
        0.5,
        "no data",
        transform=axes.get_xaxis_transform(),
        rotation=90,
        color=FAINT,
        size=8,
        ha="center",
        va="center",
    )


def _legend() -> list[Line2D]:
    return [
        mark("p50 (half were faster)", marker="o", markersize=9),
        mark("p95", marker="_", markersize=13, markeredgewidth=2.2),
        mark("p99", marker="_", markersize=8, markeredgewidth=1.4),
    ]

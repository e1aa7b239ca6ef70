"""How unevenly users were served over time, under each policy: the windowed service difference, a line for each."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from replay.metrics.arms import Arm
from replay.metrics.notation import duration
from replay.plots.canvas import dashes, figure, legend, no_data, panels, rows_of, widths
from replay.plots.registry import plots
from replay.plots.view import View

ACROSS, POINTS = 4, 400


@plots.register("windowed_difference")
def windowed_difference(view: View) -> Figure | None:
    """A panel for each mode. None where no two users ever wanted service at once, so that nothing is uneven."""
    known = view.windows.drop_nulls("difference")
    if known.is_empty():
        return None
    length = duration(round(known["end"][0] - known["start"][0], 6))
    title = f"How much less than the best served users received, in windows of {length} (lower is fairer)"
    rows, columns = rows_of(len(view.settings), ACROSS)
    made = figure(title, max(7.0, 0.8 + 3.8 * columns), 1.2 + 3.4 * rows)
    labels = {"xlabel": "middle of the window, s", "ylabel": "service difference, weighted tokens/s"}
    grid = panels(made, len(view.settings), ACROSS, **labels)
    patterns, thickness = dashes(view.policies), widths(view.policies, thinnest=1.1, span=1.3)
    for axes, setting in zip(grid, view.settings, strict=True):
        colours = view.palette(setting, one_replay=True)
        drawn = False
        for policy in view.policies:
            arm = view.arm(setting, policy)
            line = _line(view, arm) if arm else known.clear()
            if line["difference"].count() == 0:
                continue
            drawn = True
            axes.plot(
                (line["start"] + line["end"]) / 2,
                line["difference"],
                color=colours[policy],
                linewidth=thickness[policy],
                linestyle=(0, patterns[policy]) if patterns[policy] else "-",
                alpha=0.85,
            )
        if not drawn:
            no_data(axes)
        axes.set_title(view.heading(setting, one_replay=True))
    grid[0].set_ylim(bottom=0)
    entries = view.legend(linewidth=1.6, marker=None)
    for entry, pattern in zip(entries, patterns.values(), strict=True):
        entry.set(linestyle=(0, pattern) if pattern else "-")
    legend(made, entries, len(view.policies), view.remark([arm.shown for arm in view.arms]))
    return made


def _line(view: View, arm: Arm) -> pl.DataFrame:
    """The windows of the repeat that stands for an arm; where it is not defined, the line breaks."""
    windows = view.windows.filter(pl.col("cell") == arm.shown.name)
    return windows.gather_every(max(len(windows) // POINTS, 1))

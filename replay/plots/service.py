"""What each user received over time, under each policy of one mode: the users who ask for most as lines, the others as
a band from the least served of them to the most."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from replay.metrics.notation import duration, named, plural
from replay.metrics.service import ASKED, Numbers, ledger, weights
from replay.metrics.windows import PARTS, served_in_windows
from replay.plots.canvas import DASHES, FAINT, figure, legend, no_data
from replay.plots.registry import plots
from replay.plots.view import View
from replay.results import Cell

MOST_USERS = 6
"""Lines of a panel: more cannot be told apart. They are users, so none has the colour of a policy."""
ACROSS = 4
POINTS = 400
SHADES = ["#222222", "#7A1F5C", "#1F5C7A", "#5C7A1F", "#B0603A", "#8A8AC0"]
BAND: dict[str, Any] = {"color": FAINT, "alpha": 0.3, "linewidth": 0}


@plots.register("service")
def service(view: View) -> Figure | None:
    """A panel for each policy: service a second in windows of time. None where no two users ever wanted any at once."""
    setting = view.continuous
    arms = [arm for policy in view.policies if (arm := view.arm(setting, policy)) is not None]
    lengths = {arm: _windows(view, arm.shown) for arm in arms}
    shown = [arm for arm in arms if lengths[arm]["difference"].count() > 0]
    if not shown:
        return None
    names = _users(view, shown[0].shown)
    top, others = names[:MOST_USERS], len(names) - MOST_USERS
    rows = -(-len(arms) // ACROSS)
    columns = -(-len(arms) // rows)
    first = lengths[shown[0]]
    length = duration(round(first["end"][0] - first["start"][0], 6))
    title = f"What each user received over time under each policy, {setting}: service in windows of {length}"
    made = figure(title, max(7.0, 0.8 + 2.9 * columns), 1.7 + 2.6 * rows)
    grid = made.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, arm in zip(grid.flat, arms, strict=False):
        colour = view.palette(setting, one_replay=True)[arm.policy]
        axes.set_title(arm.policy + ("" if arm.shown.valid else " (invalid)"), color=colour, weight="bold")
        _panel(axes, lengths[arm], rates(view, arm.shown), top)
    for axes in list(grid.flat)[len(arms) :]:
        axes.set_visible(False)
    for column in range(columns):
        lowest = max(row for row in range(rows) if row * columns + column < len(arms))
        grid[lowest][column].tick_params(labelbottom=True)
        grid[lowest][column].set_xlabel("middle of the window, s")
    for row in grid:
        row[0].set_ylabel("service, weighted tokens/s")
    grid[0][0].set_ylim(bottom=0)
    legend(made, _legend(top, others), 4, view.remark([arm.shown for arm in arms]))
    return made


def rates(view: View, cell: Cell) -> dict[str, Numbers]:
    """Of each user, the service a second in each window of a cell."""
    windows = _windows(view, cell)
    if windows.is_empty():
        return {}
    start, length = windows["start"][0], windows["end"][0] - windows["start"][0]
    end = windows["end"][-1] + length / PARTS / 2  # they are so many to the nanosecond: no part may be lost to rounding
    books = ledger(cell.table("requests").with_columns(**weights(view.run.service)))
    received = np.vstack([part for _, part, _ in served_in_windows(books, start, end, length)])
    return {name: received[:, place] / length for place, name in enumerate(books.names)}


def _windows(view: View, cell: Cell) -> pl.DataFrame:
    return view.windows.filter(pl.col("cell") == cell.name)


def _users(view: View, cell: Cell) -> list[str]:
    """Who asks for the most service comes first."""
    rows = cell.table("requests").with_columns(**weights(view.run.service)).drop_nulls("user")
    asked = rows.group_by("user").agg(asked=ASKED.sum()).sort("asked", "user", descending=[True, False])
    return asked["user"].to_list()


def _panel(axes: Axes, windows: pl.DataFrame, found: dict[str, Numbers], top: list[str]) -> None:
    if not found:
        no_data(axes)
        return
    every = max(len(windows) // POINTS, 1)
    times = ((windows["start"] + windows["end"]) / 2).to_numpy()[::every]
    rest = [rate[::every] for name, rate in found.items() if name not in top]
    if rest:
        axes.fill_between(times, np.min(rest, axis=0), np.max(rest, axis=0), **BAND)
    for place, name in enumerate(top):
        if name in found:
            axes.plot(times, found[name][::every], **_line(place))


def _line(place: int) -> dict[str, Any]:
    dashes = DASHES[place]
    return {"color": SHADES[place], "linewidth": 1.5, "linestyle": (0, dashes) if dashes else "-"}


def _legend(top: list[str], others: int) -> list[Line2D | Patch]:
    entries: list[Line2D | Patch] = [
        Line2D([], [], label=named(name), **_line(place)) for place, name in enumerate(top)
    ]
    if others > 0:
        entries.append(Patch(label=f"{plural(others, 'other user')}, from the least served to the most", **BAND))
    return entries

"""Time to first token against arrival: where it climbs, a queue grows, and where it falls, one is worked off.

A request without a first token has no height; it stands in a lane above, so that who was turned away is seen too.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from replay.metrics.arms import Arm
from replay.metrics.notation import enumerate_words, plural, whole
from replay.metrics.statistics import percentile
from replay.plots.canvas import FAINT, figure, legend, mark, no_data, panels, rows_of, scale, widths
from replay.plots.registry import plots
from replay.plots.view import View

ACROSS = 3
MOST_MARKS = 400
"""Of a policy in a panel: more are a cloud. The same requests are shown under each."""
STRETCHES, FEWEST = 25, 8
"""Lines have so many medians, each of so many consecutive arrivals or more."""
LANE, LANES_TOP = 0.05, 0.6
"""Shares of the panel's height: of one lane, and of all at most."""
FLAT = 5.0
"""Times the slowest of the middle policy: were one policy slower than that, the axis is logarithmic."""
PLACES = 500  # in a lane that can be told apart

Shown = dict[str, dict[str, pl.DataFrame]]


@plots.register("arrivals")
def arrivals(view: View) -> Figure:
    """A panel for each mode: marks are requests of the first valid repeat, lines the medians of consecutive arrivals,
    and lanes above them hold who never got a token."""
    shown: Shown = {
        setting: {policy: _requests(view, arm) for policy in view.policies if (arm := view.arm(setting, policy))}
        for setting in view.settings
    }
    most = max(len(rows) for by_policy in shown.values() for rows in by_policy.values())
    every, stretch = max(-(-most // MOST_MARKS), 1), max(-(-most // STRETCHES), FEWEST)
    lanes = [policy for policy in view.policies if any(_unserved(rows, policy) for rows in shown.values())]
    rows, columns = rows_of(len(view.settings), ACROSS)
    title = "Time to first token against arrival (where a line climbs, the queue grows)"
    made = figure(title, max(7.0, 0.8 + 4.4 * columns), 1.9 + 3.6 * rows)
    grid = panels(made, len(view.settings), ACROSS, xlabel="arrival (when due), s", ylabel="")
    for axes, setting in zip(grid, view.settings, strict=True):
        axes.set_title(view.heading(setting, one_replay=True))
        _panel(axes, view, setting, shown[setting], every, stretch)
    _limits(grid[0], shown, len(lanes))
    for axes in grid[::columns]:
        axes.set_ylabel(grid[0].get_ylabel())
    for axes, setting in zip(grid, view.settings, strict=True):
        _lanes(axes, view, setting, shown[setting], lanes)
    legend(made, _legend(view, every, stretch, lanes), 8, _remark(view))
    return made


def _requests(view: View, arm: Arm) -> pl.DataFrame:
    """When each request was due and its TTFT in ms, null if there was none, in order of arrival."""
    rows = view.requests.filter(pl.col("cell") == arm.shown.name)
    due = pl.coalesce("due", "arrival")
    return rows.select("row", due=due, ttft=pl.col("ttft") * 1000).drop_nulls("due").sort("due", "row")


def _unserved(shown: dict[str, pl.DataFrame], policy: str) -> int:
    return shown[policy]["ttft"].null_count() if policy in shown else 0


def _panel(axes: Axes, view: View, setting: str, shown: dict[str, pl.DataFrame], every: int, stretch: int) -> None:
    colours, thickness = view.palette(setting, one_replay=True), widths(view.policies, thinnest=1.3, span=1.2)
    for policy, rows in shown.items():
        marks = rows.filter(pl.col("row") % every == 0).drop_nulls()
        style: dict[str, Any] = {"color": colours[policy], "marker": view.marker(policy), "linestyle": ""}
        axes.plot(marks["due"], marks["ttft"], **style, markersize=3.2, markeredgewidth=0, alpha=0.4)
    for policy, rows in shown.items():  # above all marks
        line = stretches(rows, stretch, {"ttft": 50.0})
        axes.plot(line["due"], line["ttft"], color=colours[policy], linewidth=thickness[policy], alpha=0.9)
    if not any(rows["ttft"].count() for rows in shown.values()):
        no_data(axes, text="no request got a token" if any(len(rows) for rows in shown.values()) else "no data")


def stretches(rows: pl.DataFrame, length: int, percents: Mapping[str, float]) -> pl.DataFrame:
    """Of each `length` of consecutive arrivals (columns `due` and `ttft`) the middle of their due times, and
    percentiles of TTFT under the names that they are given. Who got no token counts as slower than all others: null,
    a gap in a line, where that is what is asked for."""
    place = pl.int_range(pl.len()) // length
    last = max(len(rows) // length - 1, 0)  # a short rest is one with the stretch before
    ttft = pl.col("ttft").fill_null(inf)
    found = rows.group_by(pl.min_horizontal(place, last).alias("place"), maintain_order=True).agg(
        percentile(pl.col("due"), 50).alias("due"),
        *(percentile(ttft, percent).alias(name) for name, percent in percents.items()),
    )
    return found.select("due", *(pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in percents))


def _limits(axes: Axes, shown: Shown, lanes: int) -> None:
    """Of all panels: as high as the marks and, above them, the lanes; from zero, so that a queue that grows evenly is
    a straight line, or logarithmic where one policy would press all others flat."""
    found = pl.concat(rows for by_policy in shown.values() for rows in by_policy.values())
    first, last, fastest, slowest = found.select(
        pl.min("due").alias("first"), pl.max("due").alias("last"), pl.min("ttft").alias("fastest"), pl.max("ttft")
    ).row(0)
    if first is not None:
        room = 0.03 * (last - first) or 0.5
        axes.set_xlim(first - room, last + (2.5 if lanes else 1) * room)
    ends = [rows["ttft"].max() for by_policy in shown.values() for rows in by_policy.values()]
    highest = sorted(float(end) for end in ends if isinstance(end, float))
    flat = bool(highest) and highest[-1] > FLAT * highest[len(highest) // 2]
    scale(axes, "y", [] if slowest is None else [fastest, slowest], "time to first token, ms", log=flat)
    share, (low, high) = _height(lanes), axes.get_ylim()
    logarithmic = axes.get_yscale() == "log"
    axes.set_ylim(low, low * (high / low) ** (1 / (1 - share)) if logarithmic else high / (1 - share))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}" if value <= high else "")


def _height(lanes: int) -> float:
    """Of all lanes, as a share of the panel's height."""
    return min(LANE * (lanes + 0.6), LANES_TOP) if lanes else 0.0


def _lanes(axes: Axes, view: View, setting: str, shown: dict[str, pl.DataFrame], lanes: list[str]) -> None:
    """A lane for each policy under which some got no token: a stroke where they arrived, and how many they are."""
    height = _height(len(lanes)) / (len(lanes) + 0.6)
    low, high = axes.get_xlim()
    across = axes.get_xaxis_transform()  # heights are shares of the panel
    colours = view.palette(setting, one_replay=True)
    # no line of the grid goes through
    ground: dict[str, Any] = {"facecolor": "#f6f6f6", "zorder": 1, "transform": axes.transAxes}
    axes.add_patch(Rectangle((0, 1 - _height(len(lanes))), 1, _height(len(lanes)), **ground))
    for place, policy in enumerate(lanes):
        if not (count := _unserved(shown, policy)):
            continue
        middle = 1 - height * (place + 0.8)
        without = shown[policy].filter(pl.col("ttft").is_null())
        # of those that would be drawn over each other, one
        dues = without.unique(((pl.col("due") - low) / (high - low) * PLACES).floor(), maintain_order=True)["due"]
        axes.plot(dues, [middle] * len(dues), "|", color=colours[policy], markersize=6, transform=across)
        written: dict[str, Any] = {"size": 7, "color": colours[policy], "ha": "right", "va": "center"}
        axes.text(0.995, middle, whole(count), transform=axes.transAxes, **written)


def _legend(view: View, every: int, stretch: int, lanes: list[str]) -> list[Line2D]:
    marks = "a request" if every == 1 else f"one request of {every}"
    entries = [
        *view.legend(linestyle="-", linewidth=1.6, markersize=5),
        mark(f"mark: {marks}", marker="o", markersize=3.5, color=FAINT),
        mark(f"line: median of {plural(stretch, 'consecutive arrival')}", linestyle="-", marker="", color=FAINT),
    ]
    return [*entries, mark("no first token, and how many", marker="|", markersize=7)] if lanes else entries


def _remark(view: View) -> str | None:
    drawn = [arm.shown for arm in view.arms]
    together = list(dict.fromkeys(cell.mode for cell in drawn if cell.padded))
    said = f"{enumerate_words(together)}: tokens as computed; the client sees them when the batch ends"
    return "\n".join(text for text in (said if together else None, view.remark(drawn)) if text) or None

"""What each user got: the mean end-to-end time by user, policy and mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replay.metrics.groups import NO_USER
from replay.metrics.notation import named
from replay.plots.canvas import FAINT, GRID, blocks, figure, legend, no_data, rows_of, scale
from replay.plots.registry import plots
from replay.plots.view import View

MOST_USERS, ACROSS = 16, 4


@plots.register("users")
def users(view: View) -> Figure:
    """A row for each user (those with the most requests), a mark for each policy; unserved users keep their row."""
    counts = (
        view.requests.filter(pl.col("cell") == view.arms[0].names[0])
        .group_by(pl.col("user").fill_null(NO_USER))
        .len()
        .sort("len", "user", descending=[True, False])
    )
    shown = counts.head(MOST_USERS)
    names = shown["user"].to_list()
    places = {name: place for place, name in enumerate(names)}
    left_out = f", the {MOST_USERS} of {len(counts)} with the most requests" if len(counts) > MOST_USERS else ""
    lines, columns = rows_of(len(view.settings), ACROSS)
    width, height = max(7.0, 1.4 + 3.4 * columns), 1.2 + lines * (1.0 + 0.42 * max(len(names), 2))
    made = figure(f"Mean end-to-end time of each user{left_out} (further left is better)", width, height)
    (grid,) = blocks(made, 1, len(view.settings), ACROSS, one_x=True)
    drawn: list[float] = []
    for axes, setting in zip(grid, view.settings, strict=True):
        points = _points(view, setting, places)
        _panel(axes, view, setting, points, places)
        drawn += points["latency"].to_list()
    labels = [f"{named(name)} ({count})" for name, count in shown.iter_rows()]
    grid[0].set_yticks(range(len(names)), labels)
    grid[0].set_ylim(max(len(names), 1) - 0.5, -0.5)
    for axes in grid[::columns]:
        axes.set_ylabel("user (requests)")
    for axes in grid:
        scale(axes, "x", drawn, "mean end-to-end time, ms")
    legend(made, view.legend(markersize=7), len(view.policies), view.remark())
    return made


def _panel(axes: Axes, view: View, setting: str, points: pl.DataFrame, places: Mapping[str, int]) -> None:
    import seaborn as sns  # with pandas it takes a second, which who draws nothing need not wait for

    for place in places.values():
        axes.axhline(place, color=GRID, linewidth=9, zorder=0)
    if points.is_empty():
        no_data(axes)
    else:
        sns.scatterplot(
            points.to_pandas(),
            x="latency",
            y="height",
            hue="policy",
            hue_order=view.policies,
            palette=view.palette(setting),
            style="policy",
            style_order=view.policies,
            markers={policy: view.marker(policy) for policy in view.policies},
            s=55,
            legend=False,
            ax=axes,
        )
        middle = axes.get_yaxis_transform()  # across, shares of the panel
        said: dict[str, Any] = {"color": FAINT, "size": 8, "ha": "center", "va": "center"}
        for name in places.keys() - set(points["user"]):
            axes.annotate("no answer", (0.5, places[name]), xycoords=middle, **said)
    axes.set_title(view.heading(setting))
    axes.set(xlabel="", ylabel="")
    axes.grid(visible=False, axis="y")


def _points(view: View, setting: str, places: Mapping[str, int]) -> pl.DataFrame:
    """A mark for each user and policy: milliseconds, and the height at which it stands within the user's row."""
    rows = []
    for rank, policy in enumerate(view.policies):
        offset = 0.5 * ((rank + 0.5) / len(view.policies) - 0.5)
        arm = view.arm(setting, policy)
        for name, place in places.items():
            latency = view.values.value(arm, "e2e", "mean", "user", name) if arm else None
            if latency is not None:
                rows.append((policy, name, latency * 1000, place + offset))
    columns = {"policy": pl.String, "user": pl.String, "latency": pl.Float64, "height": pl.Float64}
    return pl.DataFrame(rows, schema=columns, orient="row")

"""What each user got: the mean end-to-end time by user, policy and mode."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from replay.metrics.groups import NO_USER
from replay.plots.canvas import FAINT, GRID, figure, no_data, scale
from replay.plots.registry import plots
from replay.plots.view import View

MOST_USERS = 16


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
    left_out = f", the {MOST_USERS} of {len(counts)} with the most requests" if len(counts) > MOST_USERS else ""
    height = 2.2 + 0.42 * max(len(names), 2)
    made = figure(
        f"Mean end-to-end time of each user{left_out} (further left is better)",
        max(7.0, 1.4 + 3.4 * len(view.settings)),
        height,
    )
    grid = made.subplots(1, len(view.settings), sharex=True, sharey=True, squeeze=False)[0]
    drawn: list[float] = []
    for axes, setting in zip(grid, view.settings, strict=True):
        axes.set_title(setting)
        axes.set_xlabel("mean end-to-end time, ms")
        axes.grid(visible=False, axis="y")
        for place, name in enumerate(names):
            found = []
            for rank, policy in enumerate(view.policies):
                arm = view.arm(setting, policy)
                value = view.values.value(arm, "e2e", "mean", "user", name) if arm else None
                if value is not None:
                    offset = 0.5 * ((rank + 0.5) / len(view.policies) - 0.5)
                    axes.plot(
                        value * 1000,
                        place + offset,
                        marker=view.marker(policy),
                        color=view.colour(policy),
                        markersize=6.5,
                        alpha=0.9,
                    )
                    found.append(value * 1000)
            axes.axhline(place, color=GRID, linewidth=9, zorder=0)
            if not found:
                axes.text(
                    0.5,
                    place,
                    "no answer",
                    transform=axes.get_yaxis_transform(),
                    color=FAINT,
                    size=8,
                    ha="center",
                    va="center",
                )
            drawn += found
        if not names:
            no_data(axes)
    labels = [f"{name} ({count})" for name, count in shown.iter_rows()]
    grid[0].set_yticks(range(len(names)), labels)
    grid[0].set_ylim(len(names) - 0.5, -0.5)
    grid[0].set_ylabel("user (requests)")
    for axes in grid:
        scale(axes, "x", drawn)
    made.legend(
        handles=view.legend(markersize=7),
        loc="outside lower center",
        ncols=max(len(view.policies), 1),
        title=view.remark or None,
    )
    return made

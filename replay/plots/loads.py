"""Latency against load: a line for each policy over the loads at which a trace was replayed, and where they part.

It is drawn once for all loads of a trace, with the first of them.
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from replay.metrics.arms import arms
from replay.metrics.loads import Loads, Parting, find_partings, loads_from
from replay.plots.canvas import INK, figure, legend, mark, no_data, scale
from replay.plots.registry import plots
from replay.plots.view import INVALID, View

ROWS = (("mean", "mean TTFT, ms"), ("p99", "TTFT p99, ms"))
PARTS: dict[str, Any] = {"color": INK, "linestyle": (0, (4, 3)), "linewidth": 1.0}


@plots.register("loads")
def loads(view: View) -> Figure | None:
    """A column for each setting, mean above p99. None for a trace of one load, and for all loads but the first."""
    found = loads_from(view.run.traces, view.trace)
    if found is None:
        return None
    everything, seed = arms(view.run), int(view.run.manifest.get("seed") or 0)
    partings = {
        parting.setting: parting for parting in find_partings(found, everything, view.all_requests, view.values, seed)
    }
    places = {
        (arm.setting, arm.policy, factor): arm
        for factor, trace in found.traces.items()
        for arm in everything
        if arm.trace == trace
    }
    settings = list(dict.fromkeys(setting for setting, _, _ in places))
    made = figure(f"Latency against load: {found.name}", max(7.0, 0.8 + 4.2 * len(settings)), 7.2)
    grid = made.subplots(len(ROWS), len(settings), sharex=True, sharey="row", squeeze=False)
    for row, (statistic, label) in enumerate(ROWS):
        lines = {
            (setting, policy): [
                (factor, 1000 * value, arm.valid)
                for factor in found.factors
                if (arm := places.get((setting, policy, factor))) is not None
                and (value := view.values.value(arm, "ttft", statistic)) is not None
            ]
            for setting in settings
            for policy in view.policies
        }
        heights = [value for line in lines.values() for _, value, _ in line]
        for column, setting in enumerate(settings):
            axes = grid[row][column]
            for policy in view.policies:
                _line(axes, view, policy, lines[setting, policy])
            if not any(lines[setting, policy] for policy in view.policies):
                no_data(axes)
            _axes(axes, found, partings.get(setting))
            if row == 0:
                axes.set_title(f"{setting}\n{partings[setting].words}" if setting in partings else setting)
            scale(axes, "y", heights, label if column == 0 else "")
        for axes in grid[-1]:
            axes.set_xlabel("load: times the trace's mean rate (log scale)")
    entries = [*view.legend(markersize=6), mark("policies part here", marker="", **PARTS)]
    if any(not arm.valid for arm in places.values()):
        entries.append(mark("invalid", color=INVALID, marker="s"))
    shown = [cell for arm in places.values() for cell in arm.cells]
    legend(made, entries, len(entries), view.remark(shown))
    return made


def _line(axes: Axes, view: View, policy: str, points: list[tuple[float, float, bool]]) -> None:
    """A policy's line, with a mark at each load: grey where the cell is invalid."""
    colour = view.colour(policy)
    axes.plot([factor for factor, _, _ in points], [value for _, value, _ in points], color=colour, linewidth=1.2)
    for factor, value, valid in points:
        axes.plot(
            factor,
            value,
            marker=view.marker(policy),
            markersize=6,
            markeredgecolor="white",
            color=colour if valid else INVALID,
            alpha=0.85,
        )


def _axes(axes: Axes, found: Loads, parting: Parting | None) -> None:
    factors = found.factors
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(factors))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.10g}x")
    room = (factors[-1] / factors[0]) ** 0.06
    axes.set_xlim(factors[0] / room, factors[-1] * room)
    if parting is not None and parting.first is not None:
        axes.axvline(parting.first, zorder=0, **PARTS)

"""Fairness against efficiency: what evenness between users costs in tokens a second, or does not."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from replay.metrics.arms import Arm
from replay.plots.view import View
from replay.report.charts.arm_marks import Told, arm_marks, filling_key, of_values, spots_of
from replay.report.charts.chart import Chart, Panel, around, axis, charts, empty, rounded, with_room
from replay.report.findings import Findings

ROOM = 0.15
"""Of the span of Jain indices, below the lowest."""


@charts.register("efficiency")
def efficiency(view: View, findings: Findings) -> Chart | None:
    """Two panels, a mark for each arm in both. None where fewer than two users are known: nothing is uneven."""
    if view.requests["user"].drop_nulls().n_unique() < 2:
        return None
    slowdowns = worst_slowdowns(view)
    across = of_values(view, "output", "output_throughput", "value", "tokens/s")
    even = of_values(view, "Jain index", "jain", "value", "")
    worst = Told("worst user's mean slowdown", lambda arm: slowdowns[arm], "times")
    told = [across, even, worst]
    bars = " Bars reach from the lowest repeat to the highest." if findings.repeated else ""
    return Chart(
        "Fairness against throughput: what evenness between users costs",
        "Evenness: 1 is perfect, the upper right is best. The user who is slowed down the most: lower right is best."
        + bars,
        {"": [_panel(view, across, even, told), _panel(view, across, worst, told)]},
        picture="efficiency",
        key=filling_key(view),
        height=340,
    )


def worst_slowdowns(view: View) -> Mapping[Arm, list[float]]:
    """The largest of the users' mean slowdowns, in each repeat that has one."""
    known = view.requests.select("cell", "user", "slowdown").drop_nulls()
    means = known.group_by("cell", "user").agg(pl.col("slowdown").mean())
    found = dict(means.group_by("cell").agg(pl.col("slowdown").max()).iter_rows())
    return {arm: [found[name] for name in arm.names if name in found] for arm in view.arms}


def _panel(view: View, across: Told, up: Told, told: list[Told]) -> Panel:
    spots = spots_of(view, across, up)
    heights = [value for one in spots.values() for value in one.all_up]
    height = with_room(axis("worst user's slowdown, times", heights)) if up.unit else _of_index(heights)
    layout = {
        "xaxis": around("output tokens/s", [value for one in spots.values() for value in one.all_across]),
        "yaxis": height,
    }
    title = "who is slowed down the most" if up.unit else "how evenly users are slowed down"
    return Panel(title, arm_marks(view, spots, told), layout | ({} if spots else {"annotations": [empty()]}))


def _of_index(values: list[float]) -> dict[str, object]:
    """From below the lowest index to 1: most lie near to it, so that an axis from zero shows nothing."""
    lowest = min(values, default=0.0)
    room = ROOM * max(1 - lowest, 0.05)
    ends = rounded([max(lowest - room, 0.0), 1 + room])
    return {"title": {"text": "Jain index of the users' mean slowdowns"}, "range": ends}

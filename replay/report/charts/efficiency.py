"""Fairness against efficiency: what evenness between users costs in tokens a second, or does not."""

from __future__ import annotations

from replay.plots.efficiency import index_limits, worst_slowdowns
from replay.plots.plane import spots_of
from replay.plots.view import View
from replay.report.charts.arm_marks import Told, arm_marks, filling_key, of_values
from replay.report.charts.chart import Chart, Panel, around, axis, charts, laid_out, rounded, with_room
from replay.report.findings import Findings


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


def _panel(view: View, across: Told, up: Told, told: list[Told]) -> Panel:
    spots = spots_of(view.arms, across.repeats, up.repeats)
    heights = [value for one in spots.values() for value in one.all_up]
    height = with_room(axis("worst user's slowdown, times", heights)) if up.unit else _of_index(heights)
    layout = {
        "xaxis": around("output tokens/s", [value for one in spots.values() for value in one.all_across]),
        "yaxis": height,
    }
    title = "who is slowed down the most" if up.unit else "how evenly users are slowed down"
    marks = arm_marks(view, spots, told)
    return Panel(title, marks, laid_out(layout, marks))


def _of_index(values: list[float]) -> dict[str, object]:
    return {"title": {"text": "Jain index of the users' mean slowdowns"}, "range": rounded(index_limits(values))}

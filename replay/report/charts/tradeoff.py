"""Throughput against latency: what a mode, a policy or a size buys, and what it costs."""

from __future__ import annotations

from replay.plots.plane import spots_of
from replay.plots.view import View
from replay.report.charts.arm_marks import Told, arm_marks, filling_key, of_values
from replay.report.charts.chart import Chart, Panel, around, axis, charts, laid_out, with_room
from replay.report.findings import Findings

HEIGHT = 430


@charts.register("tradeoff")
def tradeoff(view: View, findings: Findings) -> Chart:
    """A mark for each arm. Against goodput, more is better on both axes."""
    across = of_values(view, "output", "output_throughput", "value", "tokens/s")
    ups = {
        "TTFT p95": of_values(view, "TTFT p95", "ttft", "p95", "ms", 1000),
        "TPOT p95": of_values(view, "TPOT p95", "tpot", "p95", "ms", 1000),
        "E2E p95": of_values(view, "E2E p95", "e2e", "p95", "ms", 1000),
        "goodput": of_values(view, "goodput", "goodput", "value", "%", 100),
    }
    told = [across, *ups.values()]
    sizes = " Lines join the sizes that were swept." if any(arm.variant for arm in view.arms) else ""
    bars = " Bars reach from the lowest repeat to the highest." if findings.repeated else ""
    return Chart(
        "Throughput against latency: what each policy and mode buys",
        "Further right is more throughput, lower is less waiting: the lower right corner is best (of goodput, the "
        f"upper right).{sizes}{bars}",
        {
            name: [_panel(view, across, up, told)]
            for name, up in ups.items()
            if any(up.repeats(arm) for arm in view.arms)
        },
        picture="tradeoff",
        choice="against",
        key=filling_key(view),
        height=HEIGHT,
    )


def _panel(view: View, across: Told, up: Told, told: list[Told]) -> Panel:
    spots = spots_of(view.arms, across.repeats, up.repeats)
    heights = [value for one in spots.values() for value in one.all_up]
    layout = {
        "xaxis": around("output tokens/s", [value for one in spots.values() for value in one.all_across]),
        "yaxis": with_room(axis(f"{up.name}, {up.unit}", heights, log=up.unit == "ms")),
    }
    marks = arm_marks(view, spots, told)
    return Panel("", marks, laid_out(layout, marks))

"""Latency against load: a line for each policy over the loads at which a trace was replayed, and where they part.

It is drawn once for all loads of a trace, with the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from replay.metrics.arms import Arm
from replay.metrics.loads import Loads, Parting, loads_from, partings
from replay.plots.view import View
from replay.report.charts.chart import Chart, Panel, axis, charts, laid_out, rounded, written
from replay.report.findings import Findings

FIGURES = {
    "mean TTFT": ("ttft", "mean", "mean TTFT, ms", 1000.0),
    "TTFT p99": ("ttft", "p99", "TTFT p99, ms", 1000.0),
    "mean E2E": ("e2e", "mean", "mean end-to-end time, ms", 1000.0),
    "goodput": ("goodput", "value", "goodput, %", 100.0),
    "output tokens/s": ("output_throughput", "value", "output tokens/s", 1.0),
}
RISING = ("goodput", "output tokens/s")
Places = Mapping[tuple[str, str], Sequence[tuple[float, Arm]]]
"""By mode and policy: the load factors, the lowest first, and the arm of each."""


@charts.register("loads")
def loads(view: View, findings: Findings) -> Chart | None:
    """A panel for each mode. None for a trace of one load, and for all loads but the first."""
    found = loads_from(view.run.traces, view.trace)
    if found is None:
        return None
    places: dict[tuple[str, str], list[tuple[float, Arm]]] = {}
    for factor, trace in found.traces.items():
        for arm in findings.arms:
            if arm.trace == trace:
                places.setdefault((arm.setting, arm.policy), []).append((factor, arm))
    apart = partings(found, {trace: contrasts.policies for trace, contrasts in findings.contrasts.items()})
    return Chart(
        f"How each policy bears a growing load: {found.name}",
        "Load in times the trace's mean rate. Lower is better for times, higher for goodput and tokens/s; right of the "
        "dashed line, policies can be told apart.",
        {name: _panels(view, found, places, {one.setting: one for one in apart}, name) for name in FIGURES},
        linked="x",
        picture="loads",
    )


def _panels(view: View, found: Loads, places: Places, apart: Mapping[str, Parting], name: str) -> list[Panel]:
    metric, statistic, label, scale = FIGURES[name]
    lines: dict[tuple[str, str], list[tuple[float, Arm, float]]] = {
        key: [
            (factor, arm, value * scale)
            for factor, arm in arms
            if (value := view.values.value(arm, metric, statistic)) is not None
        ]
        for key, arms in places.items()
    }
    heights = [value for line in lines.values() for *_, value in line]
    layout = {"xaxis": _across(found), "yaxis": axis(label, heights, log=name not in RISING)}
    panels = []
    for setting in dict.fromkeys(setting for setting, _ in places):
        drawn = {key: line for key, line in lines.items() if key[0] == setting and line}
        parting = apart.get(setting)
        own = {"shapes": [_wall(parting.first)]} if parting and parting.first is not None else {}
        traces = [_trace(policy, line, label) for (_, policy), line in drawn.items()]
        title = f"{setting}: {parting.words}" if parting else setting
        panels.append(Panel(title, traces, laid_out(layout | own, traces), setting))
    return panels


def _across(found: Loads) -> dict[str, Any]:
    room = (found.factors[-1] / found.factors[0]) ** 0.06
    ends = axis("", [found.factors[0] / room, found.factors[-1] * room])
    return {
        "title": {"text": "load, times the trace's mean rate" + (" (log scale)" if "type" in ends else "")},
        "tickvals": found.factors,
        "ticktext": [f"{factor:.10g}x" for factor in found.factors],
    } | {name: ends[name] for name in ("type", "range") if name in ends}


def _trace(policy: str, line: Sequence[tuple[float, Arm, float]], label: str) -> dict[str, Any]:
    invalid = [not arm.valid for _, arm, _ in line]
    return {
        "type": "scatter",
        "name": written(policy),
        "x": [factor for factor, _, _ in line],
        "y": rounded([value for *_, value in line]),
        "customdata": [arm.mark for _, arm, _ in line],
        "mode": "lines+markers",
        "hovertemplate": f"{label.partition(',')[0]}: %{{y:,.4~g}} at %{{x}}x%{{customdata}}",
        "meta": {"policy": policy, "setting": line[0][1].setting, "valid": True, "invalid_points": invalid},
    }


def _wall(factor: float) -> dict[str, Any]:
    """From here on policies part."""
    return {
        "type": "line",
        "x0": factor,
        "x1": factor,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": {"color": "#8a8a8a", "width": 1, "dash": "dash"},
    }

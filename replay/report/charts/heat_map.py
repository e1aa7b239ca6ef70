"""Policies down and modes across, the value of a metric in each cell, coloured from the best to the worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from replay.metrics import metrics
from replay.metrics.arms import Arm
from replay.metrics.notation import UNDEFINED, milliseconds, number, plural
from replay.plots.heat_map import merits
from replay.plots.view import View
from replay.report.charts.chart import Chart, Panel, charts, rounded, written
from replay.report.findings import Findings
from replay.report.tables import ENGINE, LATENCY, OUTCOMES, SERVICE, Column, best, defined, shown

HEADS = ("TTFT p50", "TTFT p95", "TTFT p99", "delivered TTFT p99", "TPOT p50", "TPOT p99", "E2E p50", "E2E p99")
HEADS_SERVICE = ("longest wait", "output tokens/s", "goodput", "Jain index", "evictions", "completed")
SLOWDOWN = Column("slowdown, mean", "slowdown", "mean", number)
ROW, HEAD = 30, 52  # pixels of a policy's row, and of what stands above


@charts.register("heat_map")
def heat_map(view: View, findings: Findings) -> Chart | None:
    """One panel for each metric. None where there is a single arm: nothing is held against it."""
    if len(view.arms) < 2:
        return None
    known = [column for column in [*LATENCY, *SERVICE, *ENGINE, *OUTCOMES] if column.head in HEADS + HEADS_SERVICE]
    columns = defined(shown([*known, SLOWDOWN], view.arms), view.arms, view.values)
    return Chart(
        "Which policy does best in which mode",
        "Blue is better, orange worse, the best of all in bold; grey: invalid or not defined.",
        {_head(column): [_panel(view, column)] for column in columns},
        picture="heat_map",
        choice="figure",
        height=HEAD + ROW * len(view.policies),
    )


def _head(column: Column) -> str:
    better = metrics[column.metric].better
    unit = ", ms" if column.write is milliseconds else ""
    return f"{column.head}{unit} ({better} is better)" if better else f"{column.head}{unit}"


def _panel(view: View, column: Column) -> Panel:
    policies = list(dict.fromkeys(policy for policy in view.policies if any(arm.policy == policy for arm in view.arms)))
    places = {(arm.policy, arm.setting): arm for arm in view.arms}
    grid = [[places.get((policy, setting)) for setting in view.settings] for policy in policies]
    found = _merits(view, column)
    top = best(column, view.arms, view.values)

    judged = [[arm if arm in found else None for arm in row] for row in grid]
    others = [[None if arm in found else arm for arm in row] for row in grid]
    data = [
        _cells(view, column, judged, [[found[arm] if arm else None for arm in row] for row in judged], "merit", top),
        _cells(view, column, others, [[0.5 if arm else None for arm in row] for row in others], "none", top),
    ]
    for trace in data:
        trace |= {"x": list(view.settings), "y": policies}
        trace["meta"] |= {"policies": policies, "settings": list(view.settings)}
    return Panel("", data, _layout(view, policies))


def _cells(
    view: View,
    column: Column,
    grid: Sequence[Sequence[Arm | None]],
    merits: Sequence[Sequence[float | None]],
    colours: str,
    top: str | None,
) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "z": [rounded(row) for row in merits],
        "zmin": 0,
        "zmax": 1,
        "text": [[_text(view, column, arm, top) for arm in row] for row in grid],
        "texttemplate": "%{text}",
        "hovertext": [[_hover(view, column, arm) for arm in row] for row in grid],
        "hoverinfo": "text",
        "hoverongaps": False,
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "meta": {"colours": colours},
    }


def _layout(view: View, policies: list[str]) -> dict[str, Any]:
    across = [written(setting, 40).replace(" (", "<br>(") for setting in view.settings]
    axis = {"type": "category", "showgrid": False, "ticks": "", "fixedrange": True}
    return {
        "xaxis": axis | {"side": "top", "tickvals": list(view.settings), "ticktext": across},
        "yaxis": axis | {"tickvals": policies, "ticktext": [written(policy, 20) for policy in policies]},
        "meta": {"rows": "policies", "row": ROW, "head": HEAD, "columns": "settings"},
    }


def _merits(view: View, column: Column) -> dict[Arm, float]:
    """Of the arms that can be judged."""
    entry = metrics[column.metric]
    found = {arm: value for arm in view.arms if arm.valid and (value := column.value(arm, view.values)) is not None}
    return merits(entry, found) if entry.better else {}


def _text(view: View, column: Column, arm: Arm | None, top: str | None) -> str:
    if arm is None:
        return ""
    text = column.text(arm, view.values)
    return f"<b>{text}</b>" if text == top and not arm.mark else text


def _hover(view: View, column: Column, arm: Arm | None) -> str:
    if arm is None:
        return ""
    text, found = column.text(arm, view.values), view.values.repeats(arm, column.metric, column.statistic)
    unit = " ms" if column.write is milliseconds and text != UNDEFINED else ""
    lines = [f"<b>{written(arm.policy)}</b>{arm.mark}, {written(arm.setting, 60)}", f"{column.head}: {text}{unit}"]
    if len(found) > 1:
        low, high = column.write(min(found)), column.write(max(found))
        span = f": {low} to {high}{unit}" if low != high else ", all alike"
        lines.append(plural(len(found), "repeat") + span)
    return "<br>".join(lines)

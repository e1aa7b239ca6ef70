"""Latency distributions: which share of all requests was at least so fast."""

from __future__ import annotations

from typing import Any

import polars as pl

from replay.metrics.arms import Arm
from replay.plots.view import View
from replay.report.charts.chart import MOST_POINTS, Chart, Panel, axis, charts, empty, of_arm, rounded
from replay.report.findings import Findings

METRICS = {
    "time to first token": "ttft",
    "delivered time to first token": "ttft_delivered",
    "time per token": "tpot",
    "end-to-end time": "e2e",
    "queue wait": "queue_wait",
    "slowdown": "slowdown",
}
RATIOS = ("slowdown",)


@charts.register("distributions")
def distributions(view: View, findings: Findings) -> Chart:
    """Empirical distributions over all requests: a curve that ends below 1 belongs to requests without an answer."""
    return Chart(
        "How many requests were at least this fast",
        "Higher and further left is better. A curve that ends below 100 % has requests without an answer.",
        {name: _panels(view, name, metric) for name, metric in METRICS.items() if view.requests[metric].count()},
        linked="xy",
        picture="distributions",
        choice="latency",
    )


def _panels(view: View, name: str, metric: str) -> list[Panel]:
    scale = 1.0 if metric in RATIOS else 1000.0
    found = {arm: _curve(view, arm, metric, scale) for arm in view.arms}
    ends = [value for times, _ in found.values() for value in times]
    layout = {
        "xaxis": axis(name if metric in RATIOS else f"{name}, ms", ends),
        "yaxis": {"title": {"text": "share of requests"}, "range": [0, 1.02], "tickformat": ".0%"},
    }
    panels = []
    for setting in view.settings:
        data = [_trace(arm, *found[arm]) for arm in view.arms if arm.setting == setting and found[arm][0]]
        panels.append(Panel(setting, data, layout | ({} if data else {"annotations": [empty()]}), setting))
    return panels


def _curve(view: View, arm: Arm, metric: str, scale: float) -> tuple[list[float | None], list[float | None]]:
    """Values and the shares of requests that are no larger; every request is a point, or every n-th of many."""
    rows = view.rows(arm)
    values = (rows[metric].drop_nulls() * scale).sort()
    if values.is_empty():
        return [], []
    places = pl.int_range(len(values), eager=True)
    kept = places.filter((places % -(-len(values) // MOST_POINTS) == 0) | (places == len(values) - 1))
    return rounded(values.gather(kept)), rounded((kept + 1) / len(rows))


def _trace(arm: Arm, times: list[float | None], shares: list[float | None]) -> dict[str, Any]:
    return of_arm(
        arm, x=times, y=shares, mode="lines", line={"shape": "hv"}, hovertemplate="%{y:.1%} within %{x:,.4~g}"
    )

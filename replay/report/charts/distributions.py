"""Latency distributions: which share of all requests was at least so fast, and, closely, which few were slower."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from replay.metrics.arms import Arm
from replay.plots.view import View
from replay.report.charts.chart import MOST_POINTS, Chart, Panel, axis, by_mode, charts, of_arm, rounded
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
TAILS = ("ttft", "e2e")
"""Of these the slow tail too, where the last requests have as much room as the first."""
Curve = tuple[list[float | None], list[float | None]]
"""Values and the shares of requests that are no larger, or larger."""


@charts.register("distributions")
def distributions(view: View, findings: Findings) -> Chart:
    """Empirical distributions over all requests: a curve that ends below 1 belongs to requests without an answer."""
    known = {name: metric for name, metric in METRICS.items() if view.requests[metric].count()}
    rows = view.requests.partition_by("cell", as_dict=True)
    by_arm = {arm: pl.concat([rows[name,] for name in arm.names if (name,) in rows]) for arm in view.arms}
    variants = {name: _panels(view, by_arm, name, metric, tail=False) for name, metric in known.items()}
    for name, metric in known.items():
        if metric in TAILS:
            variants[f"{name}: the slow tail"] = _panels(view, by_arm, name, metric, tail=True)
    return Chart(
        "How many requests were at least this fast",
        "Further left is better. A curve that ends below 100 % has requests without an answer; of a slow tail, the "
        "share that took longer.",
        variants,
        linked="xy",
        picture="distributions",
        choice="latency",
    )


def _panels(view: View, by_arm: Mapping[Arm, pl.DataFrame], name: str, metric: str, *, tail: bool) -> list[Panel]:
    scale = 1.0 if metric in RATIOS else 1000.0
    found = {arm: _curve(rows, metric, scale, tail=tail) for arm, rows in by_arm.items()}
    ends = [value for times, _ in found.values() for value in times]
    if tail:
        share = axis("share of requests that took longer", [one for _, shares in found.values() for one in shares])
        share |= {"tickformat": ",.3~%"}
    else:
        share = {"title": {"text": "share of requests"}, "range": [0, 1.02], "tickformat": ".0%"}
    layout = {"xaxis": axis(name if metric in RATIOS else f"{name}, ms", ends), "yaxis": share}
    what = "%{y:.3~p} take longer than %{x:,.4~g}" if tail else "%{y:.1%} within %{x:,.4~g}"
    unit = " times" if metric in RATIOS else " ms"
    traces = {
        arm: [of_arm(arm, x=x, y=y, mode="lines", line={"shape": "hv"}, hovertemplate=what + unit)]
        for arm, (x, y) in found.items()
        if x
    }
    return by_mode(view, traces, layout)


def _curve(rows: pl.DataFrame, metric: str, scale: float, *, tail: bool) -> Curve:
    """Every request is a point, or every n-th of many; of a tail, evenly spaced where it is drawn: by its logarithm."""
    values = (rows[metric].drop_nulls() * scale).sort()
    count = len(values)
    if not count:
        return [], []
    places = pl.int_range(count, eager=True)
    if tail:
        steps = pl.Series([count ** (step / MOST_POINTS) for step in range(MOST_POINTS + 1)])
        kept = (count - steps.round().cast(pl.Int64)).unique().sort()
        left = len(rows) - kept - 1  # those that took longer, and those without an answer
        drawn = left > 0
        return rounded(values.gather(kept).filter(drawn)), rounded(left.filter(drawn) / len(rows))
    kept = places.filter((places % -(-count // MOST_POINTS) == 0) | (places == count - 1))
    return rounded(values.gather(kept)), rounded((kept + 1) / len(rows))

"""Time to first token against arrival: where it climbs a queue grows, where it falls one is worked off.

Few requests are marks; of many, stretches of neighbouring arrivals are points of a line, so that a hundred thousand
weigh no more than a few hundred.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from replay.metrics.arms import Arm
from replay.plots.arrivals import stretches
from replay.plots.view import View
from replay.report.charts.chart import Chart, Panel, axis, by_mode, charts, of_arm, rounded
from replay.report.findings import Findings

MOST_MARKS = 300
"""Requests of an arm that are drawn one by one."""
STRETCHES, FEWEST = 100, 8
"""Points of a line, and the requests that one rests on at least."""
FLAT, FLATTEST = 5.0, 30.0
"""Times the slowest request of the middle arm, and of the fastest: were one slower, the axis is logarithmic."""
OF_STRETCH = {"median": 50.0, "95th percentile": 95.0, "slowest": 100.0}


@charts.register("arrivals")
def arrivals(view: View, findings: Findings) -> Chart | None:
    """A panel for each mode, of each arm its first valid repeat. None where there was no request."""
    cells = view.requests.select("cell", "row", "status", "ttft", due=pl.coalesce("due", "arrival")).drop_nulls("due")
    by_cell = {str(key[0]): rows.sort("due", "row") for key, rows in cells.partition_by("cell", as_dict=True).items()}
    found = {arm: by_cell[arm.shown.name] for arm in view.arms if arm.shown.name in by_cell}
    if not found:
        return None
    most = max(len(rows) for rows in found.values())
    note = "A line that climbs is a queue that grows; lower is better."
    stretch = max(-(-most // STRETCHES), FEWEST)
    enough = most >= 2 * FEWEST
    lines = {arm: stretches(rows, stretch, OF_STRETCH) for arm, rows in found.items()} if enough else {}
    variants = {"each request": _each(view, found, lines)} if most <= MOST_MARKS else {}
    if lines:
        variants |= {name: by_mode(view, _lines(lines, name), _layout(lines, name)) for name in OF_STRETCH}
        note += f" A point of a line is told of {stretch} neighbouring requests, the median unless another is chosen;"
        note += " where none of them got a token, there is a gap."
    if most <= MOST_MARKS and any(rows["ttft"].null_count() for rows in found.values()):
        note += " Crosses at the top never got a first token."
    return Chart(
        "Time to first token against arrival: where queues grow",
        note,
        variants,
        linked="x",
        picture="arrivals",
        choice="shown",
        height=320,
    )


def _layout(found: Mapping[Arm, pl.DataFrame], values: str) -> dict[str, Any]:
    """From zero, so that a queue that grows evenly is a straight line; logarithmic where one arm would press all
    others flat."""
    ends = [end * 1000 for rows in found.values() if isinstance(end := rows[values].max(), float)]
    least = [end * 1000 for rows in found.values() if isinstance(end := rows[values].min(), float)]
    flat = bool(ends) and max(ends) > min(FLAT * sorted(ends)[len(ends) // 2], FLATTEST * min(ends))
    dues = pl.concat([rows["due"] for rows in found.values()])
    first, last = dues.min(), dues.max()
    assert isinstance(first, float)
    assert isinstance(last, float)
    room = 0.02 * (last - first) or 0.5
    return {
        "xaxis": {"title": {"text": "arrival (when due), s"}, "range": rounded([first - room, last + room])},
        "yaxis": axis("time to first token, ms", [*least, *ends], log=flat),
    }


def _each(view: View, found: Mapping[Arm, pl.DataFrame], lines: Mapping[Arm, pl.DataFrame]) -> list[Panel]:
    """A mark for each request, and a thin line through the medians."""
    layout = _layout(found, "ttft")
    unserved = list(dict.fromkeys(arm.policy for arm, rows in found.items() if rows["ttft"].null_count()))
    lanes = _lanes(layout["yaxis"], len(unserved))
    medians = _lines(lines, "median")
    traces = {}
    for arm, rows in found.items():
        served, without = rows.drop_nulls("ttft"), rows.filter(pl.col("ttft").is_null())
        traces[arm] = [_marks(arm, served)] if len(served) else []
        if len(without):
            traces[arm].append(_crosses(arm, without, lanes[unserved.index(arm.policy)]))
        traces[arm] += medians.get(arm, [])
    return by_mode(view, traces, layout)


def _lanes(height: dict[str, Any], lanes: int) -> list[float]:
    """Heights above all marks, one for each policy, for which the axis is made higher."""
    low, high = height["range"]
    step = 0.06 * (high - low)
    height["range"] = rounded([low, high + step * (lanes + 0.5)]) if lanes else height["range"]
    places = [high + step * (place + 0.5) for place in range(lanes)]
    return [10**place for place in places] if height.get("type") == "log" else places


def _marks(arm: Arm, rows: pl.DataFrame) -> dict[str, Any]:
    return of_arm(
        arm,
        x=rounded(rows["due"]),
        y=rounded(rows["ttft"] * 1000),
        customdata=rows["row"].to_list(),
        mode="markers",
        marker={"size": 5.5, "opacity": 0.6, "line": {"width": 0}},
        hovertemplate="request %{customdata}: %{y:,.4~g} ms<br>due at %{x:,.4~g} s",
    )


def _crosses(arm: Arm, rows: pl.DataFrame, height: float) -> dict[str, Any]:
    return of_arm(
        arm,
        x=rounded(rows["due"]),
        y=rounded([height] * len(rows)),
        customdata=[
            f"request {row}: {status.replace('_', ' ')}" for row, status in rows.select("row", "status").rows()
        ],
        mode="markers",
        marker={"size": 6, "symbol": "x-thin", "line": {"width": 1.4}},
        hovertemplate="%{customdata}, no first token<br>due at %{x:,.4~g} s",
    )


def _lines(found: Mapping[Arm, pl.DataFrame], name: str) -> dict[Arm, list[dict[str, Any]]]:
    return {
        arm: [
            of_arm(
                arm,
                x=rounded(rows["due"]),
                y=rounded(rows[name] * 1000),
                mode="lines" if rows[name].count() > 1 else "markers",
                hovertemplate=f"{name} %{{y:,.4~g}} ms<br>due around %{{x:,.4~g}} s",
            )
        ]
        for arm, rows in found.items()
        if rows[name].count()
    }

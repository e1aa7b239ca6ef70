"""The engine over time: who runs, who waits, how full the KV pool is, what was evicted, how many tokens come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.over_time import Floats, accrued
from replay.plots.view import View
from replay.report.charts.chart import MOST_POINTS, Chart, Panel, by_mode, charts, of_arm, rounded
from replay.report.findings import Findings
from replay.results import Cell

Sampled = Callable[[pl.DataFrame, Cell, Floats], Floats | None]
"""From steps in order and the edges of the bins: a value for each bin; None where a cell has none."""


@charts.register("timeline")
def timeline(view: View, findings: Findings) -> Chart | None:
    """A panel for each mode, a line for each policy, of its first valid repeat. None where no step was taken."""
    columns = ("start", "end", "waiting", "running", "used_blocks", "new_tokens", "evicted", "slots")
    steps = {arm: arm.shown.table("steps").select(columns).sort("start") for arm in view.arms}
    steps = {arm: rows for arm, rows in steps.items() if len(rows)}
    if not steps:
        return None
    last = max(float(rows["end"].to_numpy().max()) for rows in steps.values())
    first = min(float(rows["start"][0]) for rows in steps.values())
    edges = np.linspace(first, max(last, first + 1e-9), MOST_POINTS + 1)
    shown: dict[str, tuple[str, Sampled]] = dict(SHOWN)
    if any(arm.shown.adapts for arm in steps):
        shown["batch size in force"] = ("requests that may be resident", _size)
    variants = {}
    for name, (label, sampled) in shown.items():
        found = {arm: line for arm, rows in steps.items() if (line := sampled(rows, arm.shown, edges)) is not None}
        if any(line.any() for line in found.values()):
            variants[name] = _panels(view, found, edges, label)
    if not variants:
        return None
    return Chart(
        "The engine over time: who runs, who waits, how full it is",
        "Averages over short bins. A growing number of waiting requests is a queue; running requests far below the "
        "limit while others wait are slots that a mode leaves idle.",
        variants,
        linked="x",
        picture="timeline",
    )


def _held(steps: pl.DataFrame, values: Floats, until: Floats, edges: Floats) -> Floats:
    """The mean over each bin of a value that holds from each step's start to `until`, and is zero between."""
    starts = steps["start"].to_numpy()
    lasted = _lasted(starts, until)
    return accrued(starts, starts + lasted, values * lasted, edges) / np.diff(edges)


def _lasted(starts: Floats, until: Floats) -> Floats:
    """Seconds to `until`, or to the next step, which may be planned while this one is computed."""
    lasted: Floats = np.maximum(np.minimum(until, np.append(starts[1:], np.inf)) - starts, 1e-9)
    return lasted


def _numbers(steps: pl.DataFrame, column: str) -> Floats:
    return steps[column].cast(pl.Float64).fill_null(0.0).to_numpy()


def _waiting(steps: pl.DataFrame, cell: Cell, edges: Floats) -> Floats:
    """Until the next step: who waits, waits while the engine idles too."""
    until = np.append(steps["start"].to_numpy()[1:], steps["end"].to_numpy()[-1:])
    return _held(steps, _numbers(steps, "waiting"), until, edges)


def _running(steps: pl.DataFrame, cell: Cell, edges: Floats) -> Floats:
    return _held(steps, _numbers(steps, "running"), steps["end"].to_numpy(), edges)


def _kv(steps: pl.DataFrame, cell: Cell, edges: Floats) -> Floats | None:
    if not cell.blocks:
        return None
    return _held(steps, _numbers(steps, "used_blocks") / cell.blocks * 100, steps["end"].to_numpy(), edges)


def _tokens(steps: pl.DataFrame, cell: Cell, edges: Floats) -> Floats:
    lasted = _lasted(steps["start"].to_numpy(), steps["end"].to_numpy())
    return _held(steps, _numbers(steps, "new_tokens") / lasted, steps["end"].to_numpy(), edges)


def _evictions(steps: pl.DataFrame, cell: Cell, edges: Floats) -> Floats:
    """Up to the end of each bin."""
    total = np.concatenate([[0.0], np.cumsum(_numbers(steps, "evicted"))])
    found: Floats = total[np.searchsorted(steps["start"].to_numpy(), edges[1:], side="right")]
    return found


def _size(steps: pl.DataFrame, cell: Cell, edges: Floats) -> Floats | None:
    if not cell.adapts:
        return None
    place = np.searchsorted(steps["start"].to_numpy(), edges[1:], side="left") - 1
    found: Floats = _numbers(steps, "slots")[np.maximum(place, 0)]
    return found


SHOWN: Mapping[str, tuple[str, Sampled]] = {
    "waiting requests": ("waiting requests", _waiting),
    "running requests": ("running requests", _running),
    "output tokens per second": ("output tokens/s", _tokens),
    "KV use": ("KV blocks used, %", _kv),
    "evictions so far": ("evictions so far", _evictions),
}


def _panels(view: View, found: Mapping[Arm, Floats], edges: Floats, label: str) -> list[Panel]:
    highest = max(float(line.max()) for line in found.values())
    width = float(edges[1] - edges[0])
    layout = {
        "xaxis": {"title": {"text": "time since the trace began, s"}, "range": rounded([edges[0], edges[-1] + width])},
        "yaxis": {"title": {"text": label}, "range": [0, rounded([1.05 * highest or 1])[0]]},
    }
    return by_mode(view, {arm: [_trace(arm, line, edges[0] + width / 2, width)] for arm, line in found.items()}, layout)


def _trace(arm: Arm, line: Floats, first: float, width: float) -> dict[str, Any]:
    return of_arm(
        arm,
        x0=rounded([first])[0],
        dx=width,
        y=rounded(line),
        mode="lines",
        hovertemplate="%{y:,.4~g}<br>at %{x:,.4~g} s",
    )

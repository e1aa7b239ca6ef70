"""An interactive chart: panels side by side, each a figure in Plotly's JSON, which the page draws and themes.

A trace says in `meta` whose it is; the page gives it the policy's colour and marker, in light and in dark, and hides it
where its policy or mode is filtered out. A chart is registered by one decorator and reaches the page from there. This
module knows no chart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil, floor, log10
from typing import Any, Literal

import polars as pl

from replay.metrics.arms import Arm
from replay.plots.view import View
from replay.registry import Registry
from replay.report.findings import Findings

DIGITS = 5
"""Significant digits of a drawn value: a screen has four thousand points at most."""
MOST_POINTS = 300
"""Points of a line: more cannot be seen."""
Linked = Literal["", "x", "y", "xy"]


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure. `setting` is the mode that it shows, with what was swept; empty where it shows several."""

    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any] = field(default_factory=dict)
    setting: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """What the page shows under one title. Of several `variants` (by name) the reader chooses; `linked` axes zoom
    together in all panels. `picture` is the static picture that shows the same, `wide` takes the page's width."""

    title: str
    note: str
    variants: Mapping[str, Sequence[Panel]]
    linked: Linked = ""
    picture: str = ""
    choice: str = "shown"  # what the variants differ in
    height: int = 300  # of a panel, in pixels
    wide: bool = False

    def spec(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


Draw = Callable[[View, Findings], Chart | None]
charts: Registry[Draw] = Registry("chart")


def rounded(values: pl.Series | Sequence[float | None]) -> list[float | None]:
    """Values as they are drawn: what is not a number is a gap."""
    return [None if value is None else float(f"{value:.{DIGITS}g}") for value in pl.Series(values, dtype=pl.Float64)]


def of_arm(arm: Arm, **trace: Any) -> dict[str, Any]:
    """A trace of an arm, named as it is hovered over."""
    return {"type": "scatter", "name": arm.policy + arm.mark, "meta": whose(arm), **trace}


def whose(arm: Arm) -> dict[str, Any]:
    """What the page filters and colours by."""
    return {"policy": arm.policy, "setting": arm.setting, "valid": arm.valid}


def axis(label: str, values: Sequence[float | None], *, log: bool = True) -> dict[str, Any]:
    """An axis around all values: from zero; logarithmic where `log` and they span more than fourfold, which its label
    says. All panels that are given the same values have the same scale."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if log and low > 0 and high > 4 * low:
        ends = [floor(log10(low) * 10) / 10, ceil(log10(high) * 10) / 10]
        return {
            "title": {"text": f"{label} (log scale)"},
            "type": "log",
            "range": ends,
            "dtick": 1 if ends[1] - ends[0] > 1.5 else "D1",
        }
    return {"title": {"text": label}, "range": [0, 1.05 * high or 1]}


def empty() -> dict[str, Any]:
    """An annotation where nothing is to be drawn."""
    return {"text": "no data", "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}

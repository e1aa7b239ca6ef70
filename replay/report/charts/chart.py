"""An interactive chart: panels side by side, each a figure in Plotly's JSON, which the page draws and themes.

A trace says in `meta` whose it is; the page gives it the policy's colour and marker, in light and in dark, and hides it
where its policy or mode is filtered out. What the page understands of `meta` stands at the head of
script/charts-look.js. A chart is registered by one decorator and reaches the page from there. This module knows no
chart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Any, Literal

from replay.metrics.arms import Arm
from replay.plots.view import View
from replay.registry import Registry
from replay.report.findings import Findings

DIGITS = 5
"""Significant digits of a drawn value: a screen has four thousand points at most."""
MOST_POINTS = 200
"""Points of a line: more cannot be seen."""
DECADES = 2.2
"""Of a logarithmic axis: of more, only each power of ten has a tick, or they would not fit on a phone."""
FEW_DECADES = 0.8
MOST_LETTERS = 32
"""Of a name."""
Linked = Literal["", "x", "y", "xy"]


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure. `setting` is the mode that it shows, with what was swept, and `policy` the policy; empty where it
    shows several."""

    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any] = field(default_factory=dict)
    setting: str = ""
    policy: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a chart's legend, of what is no policy: a marker (`symbol`) or a line (`dash`), in ink where it has
    no `colour`."""

    label: str
    symbol: str = ""
    dash: str = ""
    colour: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """What the page shows under one title. Of several `variants` (by name) the reader chooses; `linked` axes zoom
    together in all panels. `picture` is the static picture that shows the same."""

    title: str
    note: str
    variants: Mapping[str, Sequence[Panel]]
    linked: Linked = ""
    picture: str = ""
    choice: str = "shown"  # what the variants differ in
    key: Sequence[Key] = ()
    height: int = 300  # of a panel, in pixels

    def spec(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


Draw = Callable[[View, Findings], Chart | None]
charts: Registry[Draw] = Registry("chart")


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Values as they are drawn: what is not a number is a gap."""
    return [None if value is None or not isfinite(value) else float(f"{value:.{DIGITS}g}") for value in values]


def written(name: str, most: int = MOST_LETTERS) -> str:
    """A name as Plotly is to write it: nothing in it is markup, and of a long one the beginning. It must not stand in
    a template, which would read its braces."""
    whole = " ".join(name.split())
    short = escape(whole if len(whole) <= most else f"{whole[: most - 1]}…", quote=False)
    return short.replace("$", "&#36;")  # between two of them it looks for mathematics


def of_arm(arm: Arm, **trace: Any) -> dict[str, Any]:
    """A trace of an arm, named as it is hovered over."""
    return {"type": "scatter", "name": written(arm.policy) + arm.mark, "meta": whose(arm), **trace}


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
            "tickformat": ",.3~r",  # the whole number at each tick: 20, not the 2 of a decade
            "dtick": _ticks(ends[1] - ends[0]),
        }
    return {"title": {"text": label}, "range": [0, 1.05 * high or 1]}


def _ticks(decades: float) -> int | str:
    """Every decade; of few of them also 2 and 5; of hardly one every digit, for whose labels there is room."""
    return 1 if decades > DECADES else "D2" if decades > FEW_DECADES else "D1"


def with_room(height: dict[str, Any]) -> dict[str, Any]:
    """An axis with room for marks that lie at its ends."""
    low, high = height["range"]
    room = 0.05 * (high - low)
    return height | {"range": rounded([low - room if height.get("type") == "log" else low, high + room])}


def around(label: str, values: Sequence[float | None]) -> dict[str, Any]:
    """A linear axis just around all values, for marks that may lie close together; no closer than a tenth of them."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = 0.08 * (high - low) + 0.02 * max(abs(high), abs(low))
    return {"title": {"text": label}, "range": rounded([low - room, high + room or 1.0])}


def laid_out(layout: dict[str, Any], data: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A panel's layout, which says so where nothing is drawn."""
    nothing = {"text": "no data", "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}
    return layout if data else layout | {"annotations": [nothing]}


def by_mode(view: View, traces: Mapping[Arm, Sequence[dict[str, Any]]], layout: dict[str, Any]) -> list[Panel]:
    """A panel for each mode, with what is drawn of its arms; all have the same axes."""
    panels = []
    for setting in view.settings:
        data = [trace for arm, found in traces.items() if arm.setting == setting for trace in found]
        panels.append(Panel(setting, data, laid_out(layout, data), setting))
    return panels

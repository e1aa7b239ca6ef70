"""Throughput against latency: what a mode or a setting buys, and what it costs."""

from __future__ import annotations

import re
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from replay.metrics.arms import Arm
from replay.plots.canvas import FAINT, INK, figure, legend, mark, no_data, scale
from replay.plots.registry import plots
from replay.plots.view import INVALID, View

PANELS = (("ttft", "TTFT p95, ms"), ("tpot", "TPOT p95, ms"), ("e2e", "end-to-end p95, ms"))
FILLS = ("none", "left", "full", "bottom", "top", "right")
"""How a policy's marker is filled, by mode: hollow, half, full."""
MARK: dict[str, Any] = {"marker": "o", "markersize": 7, "markeredgewidth": 1.2}
NUMBERS = re.compile(r"[^=,]+=-?[\d.]+(, [^=,]+=-?[\d.]+)*")
CLEAR = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}


@plots.register("tradeoff")
def tradeoff(view: View) -> Figure:
    """One mark for each arm; sizes that were swept are joined by a line."""
    made = figure("Throughput against latency (lower right is better)", 13.0, 5.2)
    grid = made.subplots(1, len(PANELS), squeeze=False)[0]
    modes = list(dict.fromkeys(arm.mode for arm in view.arms))
    fills = {mode: FILLS[(place + max(0, 3 - len(modes))) % len(FILLS)] for place, mode in enumerate(modes)}
    for axes, (metric, label) in zip(grid, PANELS, strict=True):
        _panel(axes, view, metric, label, fills)
    modes_legend = [mark(mode, **MARK | {"fillstyle": fills[mode]}) for mode in modes]
    if not all(arm.valid for arm in view.arms):
        modes_legend.append(mark("invalid", **MARK | {"color": INVALID, "marker": "s"}))
    remark = view.remark()
    legend(
        made,
        [*view.legend(markersize=8), *modes_legend, *_swept(view)],
        len(view.policies) + len(modes) + 2,
        "colour and shape: the policy; fill: the mode" + (f"\n{remark}" if remark else ""),
    )
    return made


def _panel(axes: Axes, view: View, metric: str, label: str, fills: dict[str, str]) -> None:
    places: dict[Arm, tuple[float, float]] = {}
    for arm in view.arms:
        rate, latency = view.values.value(arm, "output_throughput", "value"), view.values.value(arm, metric, "p95")
        if rate is not None and latency is not None:
            places[arm] = rate, latency * 1000
    scale(axes, "x", [rate for rate, _ in places.values()], "output tokens/s", log=False)
    scale(axes, "y", [latency for _, latency in places.values()], label)
    if not places:
        no_data(axes)
        return
    for mode in fills:
        for policy in view.policies:
            family = [arm for arm in places if (arm.mode, arm.policy) == (mode, policy)]
            fixed = [arm for arm in family if _numbers(arm)]
            if len(fixed) > 1:
                axes.plot(*zip(*(places[arm] for arm in fixed), strict=True), color=view.colour(policy), linewidth=1)
            for arm in family:
                _mark(axes, view, metric, arm, places[arm], fills[mode])
        _label(axes, {arm: place for arm, place in places.items() if arm.mode == mode})
    _name_invalid(axes, places)


def _numbers(arm: Arm) -> bool:
    """Whether what was swept of an arm are numbers: a size that adapts, or a name, lies between no two others."""
    return not arm.shown.adapts and NUMBERS.fullmatch(arm.variant) is not None


def _mark(axes: Axes, view: View, metric: str, arm: Arm, place: tuple[float, float], fill: str) -> None:
    """An arm's mark at the mean of its repeats, thin bars from the lowest repeat to the highest."""
    colour = view.palette(arm.setting)[arm.policy]
    rates = view.values.repeats(arm, "output_throughput", "value")
    latencies = [latency * 1000 for latency in view.values.repeats(arm, metric, "p95")]
    if len(rates) > 1 and len(latencies) > 1:
        axes.plot([min(rates), max(rates)], [place[1]] * 2, color=colour, linewidth=0.8)
        axes.plot([place[0]] * 2, [min(latencies), max(latencies)], color=colour, linewidth=0.8)
    style = MARK | {"color": colour, "marker": view.marker(arm.policy), "fillstyle": fill}
    if fill == "full":  # a white edge parts marks that lie on each other; the others' edge is all they have
        style |= {"markeredgecolor": "white", "markeredgewidth": 0.8, "markersize": 9}
    axes.plot(*place, **style, alpha=0.8)


def _name_invalid(axes: Axes, places: dict[Arm, tuple[float, float]]) -> None:
    """Write whose the grey marks are, below or above them, where no other mark lies."""
    within = axes.transScale + axes.transLimits  # to shares of the panel
    marks = [tuple(within.transform(place)) for place in places.values()]
    for arm, place in places.items():
        if arm.valid:
            continue
        across, up = within.transform(place)
        for side in (-1, 1):
            inside = [abs(x - across) < 0.12 and 0.01 < side * (y - up) < 0.1 for x, y in marks]
            if not any(inside):
                _write(axes, f"{arm.policy} (invalid)", place, 7 * side)
                marks.append((across, up + 0.05 * side))
                break


def _label(axes: Axes, places: dict[Arm, tuple[float, float]]) -> None:
    """Write what was swept above the highest of its marks: one label where those lie on each other."""
    highest: dict[str, tuple[float, float]] = {}
    for arm, (rate, latency) in places.items():
        if arm.variant not in highest or latency > highest[arm.variant][1]:
            highest[arm.variant] = rate, latency
    labels: list[tuple[list[str], tuple[float, float]]] = []
    for variant, (rate, latency) in highest.items() if len(highest) > 1 else ():
        value = variant.rpartition("=")[2] or variant
        near = (found for found, (x, y) in labels if abs(x - rate) <= 0.04 * rate and abs(y - latency) <= 0.1 * latency)
        if (beside := next(near, None)) is not None:
            beside.append(value)
        else:
            labels.append(([value], (rate, latency)))
    for values, place in labels:
        _write(axes, ", ".join(values), place, 8)


def _write(axes: Axes, text: str, place: tuple[float, float], points: float) -> None:
    """A word so many points above a mark, or below it."""
    axes.annotate(
        text,
        place,
        xytext=(0, points),
        textcoords="offset points",
        ha="center",
        va="bottom" if points > 0 else "top",
        size=8,
        color=INK,
        bbox=CLEAR,
    )


def _swept(view: View) -> list[Line2D]:
    """A legend's entry for what stands beside the marks."""
    names = dict.fromkeys(arm.variant.rpartition("=")[0] for arm in view.arms if "=" in arm.variant)
    what = "numbers" if all(_numbers(arm) for arm in view.arms if arm.variant) else "words"
    if any(arm.shown.adapts for arm in view.arms):
        what = "sizes"
    line = "-" if any(_numbers(arm) for arm in view.arms) else ""
    return [mark(f"{what}: {', '.join(names)}", linestyle=line, marker="", color=FAINT)] if names else []

"""Throughput against latency: what a mode or a setting buys, and what it costs."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from replay.metrics.arms import Arm
from replay.plots.canvas import FAINT, INK, figure, mark, no_data, scale
from replay.plots.registry import plots
from replay.plots.view import View

PANELS = (("ttft", "TTFT p95, ms"), ("tpot", "TPOT p95, ms"), ("e2e", "end-to-end p95, ms"))
FILLS = ("none", "left", "full", "bottom", "top", "right")
"""How a policy's marker is filled, by mode: hollow, half, full."""


@plots.register("tradeoff")
def tradeoff(view: View) -> Figure:
    """One mark for each arm; sizes that were swept are joined by a line."""
    made = figure("Throughput against latency (lower right is better)", 13.0, 5.2)
    grid = made.subplots(1, len(PANELS), squeeze=False)[0]
    modes = list(dict.fromkeys(arm.mode for arm in view.arms))
    fills = {mode: FILLS[(place + max(0, 3 - len(modes))) % len(FILLS)] for place, mode in enumerate(modes)}
    for axes, (metric, label) in zip(grid, PANELS, strict=True):
        _panel(axes, view, metric, label, fills)
    modes_legend = [mark(mode, marker="o", markersize=9, fillstyle=fills[mode]) for mode in modes]
    made.legend(
        handles=[*view.legend(markersize=8), *modes_legend, *_swept(view)],
        loc="outside lower center",
        ncols=len(view.policies) + len(modes) + 1,
        title=view.remark or None,
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
            if not family:
                continue
            across, up = zip(*(places[arm] for arm in family), strict=True)
            axes.plot(
                across,
                up,
                color=view.colour(policy),
                marker=view.marker(policy),
                fillstyle=fills[mode],
                markersize=9,
                linewidth=1.2,
                markeredgewidth=1.5,
                alpha=0.9,
            )
            if len(family) > 1 and policy == view.policies[0]:
                _label(axes, {arm.variant: places[arm] for arm in family})


def _label(axes: Axes, places: dict[str, tuple[float, float]]) -> None:
    """Write what was swept beside its marks: one label where marks lie on each other."""
    labels: list[tuple[list[str], tuple[float, float]]] = []
    for variant, (rate, latency) in places.items():
        value = variant.rpartition("=")[2] or variant
        near = (found for found, (x, y) in labels if abs(x - rate) <= 0.04 * rate and abs(y - latency) <= 0.1 * latency)
        if (beside := next(near, None)) is not None:
            beside.append(value)
        else:
            labels.append(([value], (rate, latency)))
    middle = sum(rate for rate, _ in places.values()) / len(places)
    for values, (rate, latency) in labels:
        right = rate <= middle
        axes.annotate(
            ", ".join(values),
            (rate, latency),
            xytext=(-9 if right else 9, 7),
            textcoords="offset points",
            ha="right" if right else "left",
            size=8,
            color=INK,
        )


def _swept(view: View) -> list[Line2D]:
    """A legend's entry for the numbers beside the marks."""
    names = dict.fromkeys(arm.variant.rpartition("=")[0] for arm in view.arms if "=" in arm.variant)
    return [mark(f"numbers: {', '.join(names)}", linestyle="-", color=FAINT)] if names else []

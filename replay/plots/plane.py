"""Arms as marks in a plane of two figures: what several pictures share. It does not know which figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from replay.metrics.arms import Arm
from replay.plots.canvas import FAINT, INK, legend, mark, no_data, scale
from replay.plots.view import INVALID, View

LATENCIES = (("ttft", "TTFT p95, ms"), ("tpot", "TPOT p95, ms"), ("e2e", "end-to-end p95, ms"))
"""A panel each, against throughput: metrics, and what stands at their axes."""
FILLS = ("none", "left", "full", "bottom", "top", "right")
"""How a policy's marker is filled, by mode: hollow, half, full."""
MARK: dict[str, Any] = {"marker": "o", "markersize": 7, "markeredgewidth": 1.2}
NUMBERS = re.compile(r"[^=,]+=-?[\d.]+(, [^=,]+=-?[\d.]+)*")
CLEAR = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an arm stands: across and up, the mean of its repeats, and the values of each of them."""

    across: float
    up: float
    all_across: Sequence[float]
    all_up: Sequence[float]

    @property
    def place(self) -> tuple[float, float]:
        return self.across, self.up


def spot(across: Sequence[float], up: Sequence[float]) -> Spot | None:
    """None where either figure is not defined in any repeat."""
    if not across or not up:
        return None
    return Spot(sum(across) / len(across), sum(up) / len(up), across, up)


def spots_of(
    arms: Iterable[Arm], across: Callable[[Arm], Sequence[float]], up: Callable[[Arm], Sequence[float]]
) -> dict[Arm, Spot]:
    """Where each arm stands that has both figures, which are given by repeat."""
    found = {arm: spot(across(arm), up(arm)) for arm in arms}
    return {arm: one for arm, one in found.items() if one is not None}


def against_throughput(view: View, arms: Iterable[Arm], up: Callable[[Arm], Sequence[float]]) -> dict[Arm, Spot]:
    """Output tokens/s across."""
    return spots_of(arms, lambda arm: view.values.repeats(arm, "output_throughput", "value"), up)


def tails(view: View, arms: Iterable[Arm], metric: str) -> dict[Arm, Spot]:
    """The 95th percentile of a latency, in ms, against throughput."""
    return against_throughput(view, arms, lambda arm: [1000 * one for one in view.values.repeats(arm, metric, "p95")])


def families(arms: Iterable[Arm]) -> list[list[Arm]]:
    """The arms of each mode and policy of which more than one number was swept."""
    found: dict[tuple[str, str], list[Arm]] = {}
    for arm in arms:
        if numbers(arm):
            found.setdefault((arm.mode, arm.policy), []).append(arm)
    return [family for family in found.values() if len(family) > 1]


def fills(view: View) -> dict[str, str]:
    """The filling by mode."""
    modes = list(dict.fromkeys(arm.mode for arm in view.arms))
    return {mode: FILLS[(place + max(0, 3 - len(modes))) % len(FILLS)] for place, mode in enumerate(modes)}


def numbers(arm: Arm) -> bool:
    """Whether what was swept of an arm are numbers: a size that adapts, or a name, lies between no two others."""
    return not arm.shown.adapts and NUMBERS.fullmatch(arm.variant) is not None


def scale_both(axes: Axes, spots: Collection[Spot], label: str) -> None:
    """Tokens a second across, from zero, and a figure up: around all repeats."""
    scale(axes, "x", [value for one in spots for value in one.all_across], "output tokens/s", log=False)
    scale(axes, "y", [value for one in spots for value in one.all_up], label)


def draw_arms(axes: Axes, view: View, spots: Mapping[Arm, Spot]) -> None:
    """A mark for each arm, a line through the sizes of one policy and mode, and what was swept written above them."""
    if not spots:
        no_data(axes)
        return
    for mode, fill in fills(view).items():
        for policy in view.policies:
            family = [arm for arm in spots if (arm.mode, arm.policy) == (mode, policy)]
            places = [spots[arm].place for arm in family if numbers(arm)]
            if len(places) > 1:
                axes.plot(*zip(*places, strict=True), color=view.colour(policy), linewidth=1)
            for arm in family:
                draw(axes, view, arm, spots[arm], fill)
        label_swept(axes, {arm: one for arm, one in spots.items() if arm.mode == mode})
    name_invalid(axes, spots)


def draw(axes: Axes, view: View, arm: Arm, spot: Spot, fill: str, *, alpha: float = 0.8) -> None:
    """An arm's mark at the mean of its repeats, thin bars from the lowest repeat to the highest."""
    colour = view.palette(arm.setting)[arm.policy]
    if len(spot.all_across) > 1 and len(spot.all_up) > 1:
        bars: dict[str, Any] = {"color": colour, "linewidth": 0.8, "alpha": alpha}
        axes.plot([min(spot.all_across), max(spot.all_across)], [spot.up] * 2, **bars)
        axes.plot([spot.across] * 2, [min(spot.all_up), max(spot.all_up)], **bars)
    style = MARK | {"color": colour, "marker": view.marker(arm.policy), "fillstyle": fill}
    if fill == "full":  # a white edge parts marks that lie on each other; the others' edge is all they have
        style |= {"markeredgecolor": "white", "markeredgewidth": 0.8, "markersize": 9}
    axes.plot(*spot.place, **style, alpha=alpha)


def name_invalid(axes: Axes, spots: Mapping[Arm, Spot]) -> None:
    """Write whose the grey marks are, below or above them, where no other mark lies."""
    within = axes.transScale + axes.transLimits  # to shares of the panel
    marks = [tuple(within.transform(spot.place)) for spot in spots.values()]
    for arm, spot in spots.items():
        if arm.valid:
            continue
        across, up = within.transform(spot.place)
        for side in (-1, 1):
            inside = [abs(x - across) < 0.12 and 0.01 < side * (y - up) < 0.1 for x, y in marks]
            if not any(inside):
                write(axes, f"{arm.policy} (invalid)", spot.place, 7 * side)
                marks.append((across, up + 0.05 * side))
                break


def label_swept(axes: Axes, spots: Mapping[Arm, Spot]) -> None:
    """Write what was swept above the highest of its marks: one label where those lie on each other."""
    highest: dict[str, tuple[float, float]] = {}
    for arm, spot in spots.items():
        if arm.variant not in highest or spot.up > highest[arm.variant][1]:
            highest[arm.variant] = spot.place
    labels: list[tuple[list[str], tuple[float, float]]] = []
    for variant, (across, up) in highest.items() if len(highest) > 1 else ():
        near = (found for found, (x, y) in labels if abs(x - across) <= 0.04 * across and abs(y - up) <= 0.1 * up)
        if (beside := next(near, None)) is not None:
            beside.append(swept_value(variant))
        else:
            labels.append(([swept_value(variant)], (across, up)))
    for values, place in labels:
        write(axes, ", ".join(values), place, 8)


def swept_value(variant: str) -> str:
    """`16` of `max_running=16`."""
    return variant.rpartition("=")[2] or variant


def write(axes: Axes, text: str, place: tuple[float, float], points: float) -> None:
    """A word so many points above a mark, or below it."""
    side: dict[str, Any] = {"xytext": (0, points), "ha": "center", "va": "bottom" if points > 0 else "top"}
    axes.annotate(text, place, textcoords="offset points", bbox=CLEAR, size=8, color=INK, **side)


def arms_legend(made: Figure, view: View, drawn: Collection[Arm], *more: Line2D, said: str = "") -> None:
    """Whose a mark is, what was swept, what grey means, and what else `said` has to say."""
    modes = {arm.mode for arm in drawn}
    entries = [mark(mode, **MARK | {"fillstyle": fill}) for mode, fill in fills(view).items() if mode in modes]
    if not all(arm.valid for arm in drawn):
        entries.append(mark("invalid", **MARK | {"color": INVALID, "marker": "s"}))
    notes = [
        "colour and shape: the policy; fill: the mode",
        said,
        view.remark([cell for arm in drawn for cell in arm.cells]) or "",
    ]
    everything = [*view.legend(markersize=8), *entries, *more]
    legend(made, everything, len(everything), "\n".join(note for note in notes if note))


def swept(view: View) -> list[Line2D]:
    """A legend's entry for what stands beside the marks."""
    names = dict.fromkeys(arm.variant.rpartition("=")[0] for arm in view.arms if "=" in arm.variant)
    what = "numbers" if all(numbers(arm) for arm in view.arms if arm.variant) else "words"
    if any(arm.shown.adapts for arm in view.arms):
        what = "sizes"
    line = "-" if any(numbers(arm) for arm in view.arms) else ""
    return [mark(f"{what}: {', '.join(names)}", linestyle=line, marker="", color=FAINT)] if names else []

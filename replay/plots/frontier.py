"""The frontier of throughput and latency over batch sizes: which sizes are worth having, and which others beat.

A size is on the frontier of its policy and mode where no other has more tokens a second and is as fast, or is faster
and has as many. What was swept need not be a batch size: any number will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replay.metrics.arms import Arm
from replay.plots.canvas import FAINT, figure, mark, no_data
from replay.plots.plane import (
    CLEAR,
    LATENCIES,
    Spot,
    arms_legend,
    draw,
    families,
    fills,
    name_invalid,
    scale_both,
    swept_value,
    tails,
)
from replay.plots.registry import plots
from replay.plots.view import View

DOMINATED = 0.25  # how much of a mark is seen whose size is not worth having
BEYOND: dict[str, Any] = {"color": "#d9d9d9", "linewidth": 7, "solid_capstyle": "round", "solid_joinstyle": "round"}
"""The frontier of all policies and modes together, under the marks."""
SIDES = ((0, 8, "center", "bottom"), (0, -8, "center", "top"), (8, 0, "left", "center"), (-8, 0, "right", "center"))
NEAR = (0.045, 0.05)  # shares of the panel that a size's label takes up


@plots.register("frontier")
def frontier(view: View) -> Figure | None:
    """A line for each policy and mode through the sizes that no other beats. None where no number was swept."""
    arms = [arm for family in families(view.arms) for arm in family]
    if not arms:
        return None
    names = dict.fromkeys(arm.variant.rpartition("=")[0] for arm in arms)
    title = f"The frontier of throughput and latency over {', '.join(names)} (lower right is better)"
    made = figure(title, 13.0, 5.4)
    for axes, (metric, label) in zip(made.subplots(1, len(LATENCIES)), LATENCIES, strict=True):
        _panel(axes, view, metric, label)
    entries = [
        mark(f"frontier of a policy and mode; numbers: {', '.join(names)}", linestyle="-", marker="", color=FAINT),
        mark("frontier of all", linestyle="-", marker="", **BEYOND),
    ]
    said = "faint: beaten by another size of the same policy and mode"
    arms_legend(made, view, arms, *entries, said=said)
    return made


def on_frontier(spots: Mapping[Arm, Spot]) -> list[Arm]:
    """Those that no other beats, by tokens a second: of two that are alike both stay."""

    def beaten(one: Spot) -> bool:
        return any(
            other.across >= one.across and other.up <= one.up and other.place != one.place for other in spots.values()
        )

    return sorted((arm for arm, one in spots.items() if not beaten(one)), key=lambda arm: spots[arm].place)


def _panel(axes: Axes, view: View, metric: str, label: str) -> None:
    found = [tails(view, family, metric) for family in families(view.arms)]
    spots = {arm: one for family in found for arm, one in family.items()}
    scale_both(axes, spots.values(), label)
    if not spots:
        no_data(axes)
        return
    overall = on_frontier({arm: one for arm, one in spots.items() if arm.valid})
    if len(overall) > 1:
        axes.plot(*zip(*(spots[arm].place for arm in overall), strict=True), zorder=0, **BEYOND)
    filled, labelled = fills(view), []
    for family in found:
        front = on_frontier(family)
        if len(front) > 1:
            colour = view.colour(front[0].policy)
            axes.plot(*zip(*(family[arm].place for arm in front), strict=True), color=colour, linewidth=1.4)
        for arm, one in family.items():
            draw(axes, view, arm, one, filled[arm.mode], alpha=0.85 if arm in front else DOMINATED)
        labelled += front
    _label(axes, view, spots, [*overall, *(arm for arm in labelled if arm not in overall)])
    name_invalid(axes, spots)


def _label(axes: Axes, view: View, spots: Mapping[Arm, Spot], front: Sequence[Arm]) -> None:
    """Each size beside its mark, in the colour of its policy, on the side where nothing lies; where all sides are
    taken, or the same size stands there already, it is left out."""
    within = axes.transScale + axes.transLimits  # to shares of the panel
    taken = [tuple(within.transform(one.place)) for one in spots.values()]
    labelled: set[tuple[str, tuple[float, float]]] = set()
    for arm in front:
        size, place = swept_value(arm.variant), spots[arm].place
        across, up = within.transform(place)
        here = (size, (round(across, 2), round(up, 2)))
        if here in labelled:
            continue
        for right, above, horizontal, vertical in SIDES:
            middle = across + NEAR[0] * right / 8, up + NEAR[1] * above / 8
            if any(abs(x - middle[0]) < NEAR[0] * 0.75 and abs(y - middle[1]) < NEAR[1] * 0.75 for x, y in taken):
                continue
            label = axes.annotate(size, place, xytext=(right, above), textcoords="offset points", bbox=CLEAR, size=8)
            label.set(ha=horizontal, va=vertical, color=view.colour(arm.policy))
            taken.append(middle)
            labelled.add(here)
            break

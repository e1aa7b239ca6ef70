"""Arms as marks in a plane of two figures: colour and shape are the policy's, the filling is the mode's.

What several charts share; it does not know which figures. Fillings are those of the static pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replay.metrics.arms import Arm
from replay.metrics.notation import number, plural, several
from replay.plots.plane import Spot, families, fills, swept_value
from replay.plots.view import View
from replay.report.charts.chart import Key, of_arm, rounded, whose, written

FILLINGS = {"none": "-open", "left": "-open-dot", "full": "", "bottom": "-dot", "top": "-open-dot", "right": "-dot"}
"""Of the pictures' markers, by what Plotly adds to a symbol's name."""
NEAR = 0.06
"""Share of a figure within which the same label is not written twice."""
TOGETHER = 0.004
"""The same of marks that cover each other."""
SIZE, STEP, MOST_RINGS = 11, 5, 3
"""Pixels of a mark, and how much larger each is than the one upon it."""


@dataclass(frozen=True, slots=True)
class Told:
    """A figure of an arm: what it is called, its value in each repeat, and its unit."""

    name: str
    repeats: Callable[[Arm], Sequence[float]]
    unit: str

    def text(self, arm: Arm) -> str:
        """With the lowest and the highest repeat."""
        found = self.repeats(arm)
        if not found:
            return f"{self.name}: not defined"
        low, high = number(min(found)), number(max(found))
        span = f" ({low} to {high})" if low != high else ""
        return f"{self.name}: {number(sum(found) / len(found))}{span} {self.unit}".rstrip()


def of_values(view: View, name: str, metric: str, statistic: str, unit: str, scale: float = 1.0) -> Told:
    """A figure of the summary."""
    return Told(name, lambda arm: [scale * value for value in view.values.repeats(arm, metric, statistic)], unit)


def arm_marks(view: View, spots: Mapping[Arm, Spot], told: Sequence[Told]) -> list[dict[str, Any]]:
    """A line through the swept sizes of each policy and mode, then a mark for each arm, which says all that is `told`
    when hovered over."""
    filled = {mode: FILLINGS[fill] for mode, fill in fills(view).items()}
    lines = [_line(family, spots) for family in families(spots)]
    labels, alike = _labels(spots), _alike(spots)
    return lines + [_mark(arm, spots, filled[arm.mode], labels.get(arm), told, alike[arm]) for arm in spots]


def _line(family: Sequence[Arm], spots: Mapping[Arm, Spot]) -> dict[str, Any]:
    """Through the arms of a family; the page leaves out the points of modes that are hidden."""
    meta = {"policy": family[0].policy, "points": [arm.setting for arm in family]}
    across, up = rounded([spots[arm].across for arm in family]), rounded([spots[arm].up for arm in family])
    line = {"x": across, "y": up, "mode": "lines", "line": {"width": 1.2, "dash": "solid"}, "hoverinfo": "skip"}
    return {"type": "scatter", "name": written(family[0].policy), "meta": meta, **line}


def _alike(spots: Mapping[Arm, Spot]) -> dict[Arm, list[Arm]]:
    """The arms whose marks lie on each other, in the order in which they are drawn."""

    def together(one: Spot, other: Spot) -> bool:
        pairs = zip(one.place, other.place, strict=True)
        return all(abs(a - b) <= TOGETHER * max(abs(a), abs(b)) for a, b in pairs)

    return {arm: [other for other in spots if together(spots[arm], spots[other])] for arm in spots}


def _mark(
    arm: Arm,
    spots: Mapping[Arm, Spot],
    filling: str,
    label: str | None,
    told: Sequence[Told],
    alike: Sequence[Arm],
) -> dict[str, Any]:
    """Of marks that lie on each other the first is the largest, so that all are seen."""
    one, above = spots[arm], len(alike) - alike.index(arm) - 1
    others = [f"{written(other.policy)}, {written(other.setting)}" for other in alike if other != arm]
    also = [f"also here: {several(others)}"] if others else []
    trace = of_arm(
        arm,
        x=rounded([one.across]),
        y=rounded([one.up]),
        mode="markers+text" if label else "markers",
        marker={"size": SIZE + STEP * min(above, MOST_RINGS)},
        hoverinfo="text",
        hovertext=hover(arm, [*(each.text(arm) for each in told), *also]),
        **({"text": [written(label)], "textposition": "top center"} if label else {}),
    )
    trace["meta"] = whose(arm) | {"filling": filling}
    for name, place, values in (("error_x", one.across, one.all_across), ("error_y", one.up, one.all_up)):
        if len(values) > 1 and max(values) > min(values):
            more, less = rounded([max(values) - place]), rounded([place - min(values)])
            trace[name] = {"type": "data", "symmetric": False, "array": more, "arrayminus": less, "width": 0}
    return trace


def hover(arm: Arm, lines: Sequence[str]) -> str:
    """What is said of an arm's mark."""
    repeats = [plural(len(arm.cells), "repeat") + ": their mean, lowest and highest"] if len(arm.cells) > 1 else []
    return "<br>".join([f"<b>{written(arm.policy)}</b>{arm.mark}, {written(arm.setting, 60)}", *lines, *repeats])


def _labels(spots: Mapping[Arm, Spot]) -> dict[Arm, str]:
    """What was swept, beside its marks: once where several lie close together."""
    found: dict[Arm, str] = {}
    for arm, one in spots.items():
        label = swept_value(arm.variant) if arm.variant else ""
        beside = (spots[other].place for other, text in found.items() if text == label)
        near = any(abs(x - one.across) <= NEAR * abs(x) and abs(y - one.up) <= 2 * NEAR * abs(y) for x, y in beside)
        if label and not near:
            found[arm] = label
    return found


def filling_key(view: View) -> list[Key]:
    """Which filling is which mode; nothing to tell where there is one."""
    found = fills(view)
    return [Key(mode, symbol="circle" + FILLINGS[fill]) for mode, fill in found.items()] if len(found) > 1 else []

"""Who pays: what groups of requests got under each policy, by the length of the answer, user, priority and class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replay.metrics.arms import Arm
from replay.plots.view import View
from replay.report.breakdowns import group_sizes
from replay.report.charts.chart import Chart, Panel, axis, by_mode, charts, of_arm, rounded, written
from replay.report.findings import Findings

BREAKDOWNS = {"length": "output length", "user": "user", "priority": "priority", "class": "class"}
MOST_GROUPS = 12
ROW, HEAD = 32, 64  # pixels of a group's row, and of the axis below them


@dataclass(frozen=True, slots=True)
class Kind:
    """A metric of requests: what its mean is called on an axis, and the unit that it is drawn in."""

    name: str
    metric: str
    label: str
    scale: float
    unit: str


KINDS = (
    Kind("slowdown", "slowdown", "mean slowdown, times", 1.0, "times"),
    Kind("TTFT", "ttft", "mean time to first token, ms", 1000.0, "ms"),
    Kind("E2E", "e2e", "mean end-to-end time, ms", 1000.0, "ms"),
)


@charts.register("lengths")
def lengths(view: View, findings: Findings) -> Chart | None:
    """None where no breakdown has two groups."""
    variants: dict[str, Sequence[Panel]] = {}
    for by, name in BREAKDOWNS.items():
        sizes = group_sizes(findings, view.trace, by)
        if len(sizes) < 2:
            continue
        kept = sorted(sizes, key=lambda group: -sizes[group])[:MOST_GROUPS]
        shown = {group: size for group, size in sizes.items() if group in kept}
        more = f" (the {len(shown)} of {len(sizes)} with the most requests)" if len(sizes) > len(shown) else ""
        for kind in KINDS:
            found = _values(view, kind, by, shown)
            if any(value is not None for values in found.values() for value in values):
                variants[f"{kind.name} by {name}{more}"] = _panels(view, kind, by, shown, found)
    if not variants:
        return None
    return Chart(
        "Who pays: how each group of requests fares",
        "Further left is better. Policies that cross favour one group at another's cost; a group without a mark got no "
        "answer. Slowdown: over the time that the request takes alone.",
        variants,
        linked="x",
        picture="length_slowdown",
        height=HEAD + ROW * len(next(iter(variants.values()))[0].layout["yaxis"]["tickvals"]),
    )


def _values(view: View, kind: Kind, by: str, groups: Mapping[str, int]) -> dict[Arm, list[float | None]]:
    def value(arm: Arm, group: str) -> float | None:
        found = view.values.value(arm, kind.metric, "mean", by, group)
        return None if found is None else kind.scale * found

    return {arm: [value(arm, group) for group in groups] for arm in view.arms}


def _panels(
    view: View, kind: Kind, by: str, groups: Mapping[str, int], found: Mapping[Arm, list[float | None]]
) -> list[Panel]:
    layout = {
        "height": HEAD + ROW * len(groups),
        "xaxis": axis(kind.label, [value for values in found.values() for value in values]),
        "yaxis": {
            "tickvals": list(range(len(groups))),
            "ticktext": [f"{written(_named(by, group), 20)} ({size:,})" for group, size in groups.items()],
            "range": [len(groups) - 0.5, -0.5],
            "zeroline": False,
            "fixedrange": True,
        },
    }
    known = {arm: values for arm, values in found.items() if any(value is not None for value in values)}
    return by_mode(view, {arm: [_trace(arm, kind, by, groups, values)] for arm, values in known.items()}, layout)


def _named(by: str, group: str) -> str:
    return f"priority {group}" if by == "priority" and group.lstrip("-").isdigit() else group


def _trace(arm: Arm, kind: Kind, by: str, groups: Mapping[str, int], values: Sequence[float | None]) -> dict[str, Any]:
    """A line joins groups that have an order: users and classes have none."""
    ordered = by in ("length", "priority")
    return of_arm(
        arm,
        x=rounded(values),
        y=list(range(len(groups))),
        customdata=[written(_named(by, group), 60) for group in groups],
        mode="lines+markers" if ordered else "markers",
        line={"width": 1},
        marker={"size": 9},
        hovertemplate=f"%{{customdata}}: %{{x:,.4~g}} {kind.unit}",
    )

"""Paired differences with their intervals: which policies may be told from the base, and which modes from each other.

It draws the comparisons that the report makes, as shares of the base's mean, so that modes with long and with short
waits can stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from replay.metrics.contrasts import Contrast
from replay.metrics.few import few
from replay.metrics.notation import change, number, percent, plural, signed
from replay.metrics.paired import HIGHER_IS_BETTER, Difference
from replay.plots.view import View
from replay.report.charts.chart import Chart, Key, Panel, charts, of_arm, rounded, whose, written
from replay.report.findings import Findings

METRICS = {
    "mean E2E": "e2e",
    "mean TTFT": "ttft",
    "mean delivered TTFT": "ttft_delivered",
    "mean TPOT": "tpot",
    "goodput": "good",
    "output tokens/s": "output_throughput",
}
UNITS = {"good": ("points", 100.0), "output_throughput": ("tokens/s", 1.0)}
MILLISECONDS = ("ms", 1000.0)
WHY = {
    "not certain": "the interval covers zero",
    "within noise": "no larger than what repeats of one cell differ by",
    "unequal pace": "the machine's speed may have made it",
}
ROW, HEAD = 26, 70  # pixels of a policy's row, and of the axis below them
BARS = 1.0
"""An axis is as wide as the marks need; bars count up to this share of the base's mean, and may be cut off."""

Named = Callable[[Contrast], str]


@charts.register("differences")
def differences(view: View, findings: Findings) -> Chart | None:
    """None where there is nothing to compare."""
    found = findings.contrasts[view.trace]
    padded = any(cell.padded for arm in view.arms for cell in arm.cells)
    base = next((pair.base.policy for pair in found.policies), "")
    kinds: list[tuple[str, Sequence[Contrast], Named]] = [
        (f"policies against {base}: ", found.policies, lambda pair: pair.other.setting),
        ("modes against each other: ", found.modes, lambda pair: f"{pair.other.mode} against {pair.base.mode}"),
    ]
    near = set(few(findings.arms, findings.values).policies)
    variants: dict[str, list[Panel]] = {}
    for title, pairs, named in kinds:
        for name, metric in METRICS.items():
            drawn = [pair for pair in pairs if pair.differences[metric].relative is not None]
            if drawn and (padded or metric != "ttft_delivered"):
                variants[title + name] = _panels(drawn, metric, named, near, view)
    if not variants:
        return None
    return Chart(
        "How sure the differences are: request by request, with their intervals",
        "Left of zero is less: better for times, worse for goodput and tokens/s. A hollow, faint mark may not be "
        "claimed: no difference is seen.",
        variants,
        linked="x",
        choice="compare",
        key=[Key("claimed", symbol="circle"), Key("no difference seen", symbol="circle-open")],
        height=HEAD + ROW * max(len(view.policies) - 1, 2),
    )


def _panels(pairs: Sequence[Contrast], metric: str, named: Named, near: set[str], view: View) -> list[Panel]:
    by_title: dict[str, list[Contrast]] = {}
    for pair in pairs:
        by_title.setdefault(named(pair), []).append(pair)
    axis = _axis(metric, [pair.differences[metric] for pair in pairs if pair.other.policy in near])
    order = {policy: place for place, policy in enumerate(view.policies)}
    panels = []
    for title, members in by_title.items():
        rows = sorted(members, key=lambda pair: order.get(pair.other.policy, len(order)))
        settings = {pair.other.setting for pair in members} | {pair.base.setting for pair in members}
        alone = settings.pop() if len(settings) == 1 else ""
        panels.append(Panel(title, [_trace(pair, metric) for pair in rows], axis | _rows(rows), alone))
    return panels


def _axis(metric: str, found: Sequence[Difference]) -> dict[str, Any]:
    """The same for all panels: around zero and the differences of the policies that are shown at first."""
    marks = [0.0, *(each.relative for each in found if each.relative is not None)]
    ends = [end for each in found for end in each.relative_bounds or ()]
    low, high = (
        pick([*marks, *(max(-BARS, min(end, BARS)) for end in ends)])  # marks and, as far as is worth it, their bars
        for pick in (min, max)
    )
    room = 0.06 * (high - low) or 0.05
    better = "right" if metric in HIGHER_IS_BETTER else "left"
    return {
        "xaxis": {
            "title": {"text": f"against the base ({better} is better)"},
            "range": rounded([low - room, high + room]),
            "tickformat": "+.3~%",
            "zeroline": True,
            "zerolinewidth": 2,
        }
    }


def _rows(pairs: Sequence[Contrast]) -> dict[str, Any]:
    names = {pair.other.policy: written(f"{pair.name}{pair.other.mark}", 24) for pair in pairs}
    return {
        "yaxis": {
            "type": "category",
            "categoryarray": list(names),
            "tickvals": list(names),
            "ticktext": list(names.values()),
            "autorange": "reversed",
            "fixedrange": True,
        },
        "meta": {"rows": "policies", "row": ROW, "head": HEAD},
    }


def _trace(pair: Contrast, metric: str) -> dict[str, Any]:
    found = pair.differences[metric]
    assert found.relative is not None
    trace = of_arm(
        pair.other,
        x=rounded([found.relative]),
        y=[pair.other.policy],
        mode="markers",
        marker={"size": 10},
        hoverinfo="text",
        hovertext=_hover(pair, found),
    )
    valid = pair.base.valid and pair.other.valid
    settings = list(dict.fromkeys([pair.base.setting, pair.other.setting]))
    trace["meta"] = whose(pair.other) | {"valid": valid, "all_settings": settings}
    if not found.seen:
        trace["meta"] |= {"filling": "-open", "faint": True}
    if (bounds := found.relative_bounds) is not None:
        above, below = rounded([bounds[1] - found.relative]), rounded([found.relative - bounds[0]])
        trace["error_x"] = {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "width": 0}
    return trace


def _hover(pair: Contrast, found: Difference) -> str:
    unit, scale = UNITS.get(found.metric, MILLISECONDS)
    assert found.difference is not None
    assert found.relative is not None
    base, other = pair.base, pair.other
    against = f"{base.policy}{base.mark}" if base.setting == other.setting else f"{base.setting}{base.mark}"
    lines = [
        f"<b>{written(other.policy)}</b>{other.mark}, {written(other.setting, 60)}, against {written(against, 60)}",
        f"difference: {signed(found.difference * scale)} {unit} ({change(found.relative)})",
    ]
    if found.low is not None and found.high is not None:
        together = f" (of all {found.comparisons} comparisons together)" if found.comparisons > 1 else ""
        lines.append(f"interval: {signed(found.low * scale)} to {signed(found.high * scale)} {unit}{together}")
    if found.base_mean is not None:
        lines.append(f"{written(against, 60)}: {number(found.base_mean * scale)} {unit.replace('points', '%')}")
    lines += _certainty(found)
    return "<br>".join(lines)


def _certainty(found: Difference) -> list[str]:
    lines = []
    if found.wins is not None:
        better, worse = percent(round(found.wins.better, 3)), percent(round(found.wins.worse, 3))
        lines.append(f"better for {better} of the requests, worse for {worse}")
    if found.pairs:
        lines.append(f"{plural(found.pairs, 'pair')} of requests")
    if not found.seen:
        why = f": {WHY.get(found.doubt, found.doubt)}" if found.doubt else ""
        lines.append(f"<i>no difference seen{why}</i>")
    return lines

"""What each user received over time, under each policy of a mode: the most frequent as lines, others as a band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from replay.metrics.arms import Arm
from replay.metrics.few import few
from replay.metrics.notation import duration, plural
from replay.metrics.service import Numbers
from replay.plots.service import MOST_USERS, SHADES, rates
from replay.plots.view import View
from replay.report.charts.chart import MOST_POINTS, Chart, Key, Panel, charts, rounded, written
from replay.report.findings import Findings

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
BAND = "rgba(128, 128, 128, 0.28)"
MOST_PANELS = 40
"""Of more arms than these, those of each mode that are shown at first: each costs a walk through all of its tokens."""
Ends = tuple[float, float]


@charts.register("service")
def service(view: View, findings: Findings) -> Chart | None:
    """A panel for each policy. None where no two users ever wanted any at once."""
    known = set(view.windows.drop_nulls("difference")["cell"].unique())
    settings = [view.continuous, *(setting for setting in view.settings if setting != view.continuous)]
    most = max(MOST_PANELS // len(settings), 1)
    first = few(findings.arms, findings.values).policies
    policies = view.policies if len(view.arms) <= MOST_PANELS else [name for name in view.policies if name in first]
    arms = {
        setting: [arm for policy in policies if (arm := view.arm(setting, policy)) and arm.shown.name in known][:most]
        for setting in settings
    }
    found = {arm: rates(view, arm.shown) for members in arms.values() for arm in members}
    if not found:
        return None
    top = _top(view, next(iter(found)))
    others = max(len(rate) for rate in found.values()) - len(top)
    ends = (0.0, float(view.windows["end"].max() or 0))  # type: ignore[arg-type]  # seconds
    highest = max(float(rate.max(initial=0.0)) for each in found.values() for rate in each.values())
    windows = view.windows.filter(cell=next(iter(found)).shown.name)
    length = duration(round(windows["end"][0] - windows["start"][0], 6))
    return Chart(
        "What each user received over time, under each policy",
        f"Service in windows of {length}: prompt and answer tokens, weighted. Lines that stay together are fair; a "
        "line at zero while others are high waits.",
        {
            setting: [_panel(view, arm, found[arm], top, ends, highest) for arm in members]
            for setting, members in arms.items()
            if members
        },
        linked="x",
        picture="service",
        choice="mode",
        key=_key(top, others),
        height=260,
    )


def _top(view: View, arm: Arm) -> list[str]:
    """Who has the most requests comes first."""
    users = view.requests.filter(cell=arm.shown.name).drop_nulls("user")["user"].value_counts()
    return users.sort("count", "user", descending=[True, False])["user"].head(MOST_USERS).to_list()


def _key(top: Sequence[str], others: int) -> list[Key]:
    entries = [Key(name, dash=DASHES[place], colour=SHADES[place]) for place, name in enumerate(top)]
    band = Key(f"{plural(others, 'other user')}, from the least served to the most", symbol="square", colour=BAND)
    return [*entries, band] if others > 0 else entries


def _panel(view: View, arm: Arm, found: dict[str, Numbers], top: Sequence[str], ends: Ends, highest: float) -> Panel:
    windows = view.windows.filter(cell=arm.shown.name)
    every = max(-(-len(windows) // MOST_POINTS), 1)
    start, length = windows["start"][0], windows["end"][0] - windows["start"][0]
    apart = (windows["start"][1] - start) * every if len(windows) > 1 else length
    times: dict[str, Any] = {"type": "scatter", "x0": rounded([start + length / 2])[0], "dx": rounded([apart])[0]}
    rest = [rate[::every] for name, rate in found.items() if name not in top]
    data = _band(rest, times) if rest else []
    for place, name in enumerate(top):
        if name in found:
            line = {"color": SHADES[place], "dash": DASHES[place], "width": 1.6}
            template = "%{y:,.3~s} weighted tokens/s<br>at %{x:,.4~g} s"
            shown = {"mode": "lines", "line": line, "hovertemplate": template, "meta": {"plain": True}}
            data.append({**times, "name": written(name), "y": rounded(found[name][::every]), **shown})
    layout = {
        "xaxis": {"title": {"text": "middle of the window, s"}, "range": rounded(ends)},
        "yaxis": {"title": {"text": "weighted tokens/s"}, "range": [0, 1.05 * highest or 1]},
    }
    return Panel(arm.policy + ("" if arm.shown.valid else " (invalid)"), data, layout, policy=arm.policy)


def _band(rest: Sequence[Numbers], times: dict[str, Any]) -> list[dict[str, Any]]:
    """From the least served of the others to the most, in every window."""
    shared = {**times, "mode": "lines", "hoverinfo": "skip", "line": {"width": 0}, "meta": {"plain": True}}
    lower, upper = rounded(np.min(rest, axis=0)), rounded(np.max(rest, axis=0))
    return [{**shared, "y": lower}, {**shared, "y": upper, "fill": "tonexty", "fillcolor": BAND}]

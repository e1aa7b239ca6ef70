"""What the page's script must know: policies with their looks, modes, traces. Looks are those of the pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from replay.metrics.few import few
from replay.plots.view import KNOWN, OTHERS, views
from replay.report.findings import Findings

SYMBOLS = {
    **{"o": "circle", "^": "triangle-up", "s": "square", "D": "diamond", "v": "triangle-down", "P": "cross", "X": "x"},
    **{"<": "triangle-left", ">": "triangle-right", "p": "pentagon", "h": "hexagon", "*": "star", "d": "diamond-tall"},
}
"""Markers of the pictures by their names in Plotly."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
"""Where colours come round again."""


def facts(findings: Findings) -> dict[str, Any]:
    """As JSON has it. Of many policies only a few are shown at first."""
    found = views(findings.run, findings.measured, every_policy=True)
    marks = found[0].marks if found else {}
    ran = {arm.policy for arm in findings.arms}
    kept = few(findings.arms, findings.values).policies if findings.arms else []
    return {
        "policies": [
            {
                "name": name,
                "colour": colour,
                "symbol": SYMBOLS[marker],
                "dash": _dash(name, list(marks)),
                "shown": name in kept,
            }
            for name, (colour, marker) in marks.items()
            if name in ran
        ],
        "settings": list(dict.fromkeys(arm.setting for arm in findings.arms)),
        "traces": findings.traces,
    }


def _dash(policy: str, policies: Sequence[str]) -> str:
    others = [name for name in policies if name not in KNOWN]
    return DASHES[others.index(policy) // len(OTHERS) % len(DASHES)] if policy in others else DASHES[0]

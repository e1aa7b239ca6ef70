"""Advice as people read it: a numbered list for the report, a line or two for a terminal, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from replay.metrics.arms import Arm
from replay.metrics.notation import enumerate_words
from replay.report.advice.registry import Advice
from replay.report.findings import Findings
from replay.traces.wording import toml_text

MOST = 6
"""Pieces in the report; the rest are in summary.json."""
MOST_IN_SHORT = 2
WORTH_A_LINE = 0.05
"""From this cost on, over the whole run, a piece is worth a line at the end of a run."""
MOST_CLAUSES = 3


def advice_section(found: Sequence[Advice], findings: Findings) -> list[str]:
    """The parts of this section; none where there is nothing to advise."""
    if not found:
        return []
    told = told_of_advice(found[:MOST], findings)
    lines = [f"{place}. {what} {why}" for place, (what, why) in enumerate(told, start=1)]
    note = "What costs most comes first. Each is told of the cell that it costs most, with a setting to try there."
    if findings.repeated:
        note += " Counts are of all repeats."
    if len(found) > MOST:
        names = enumerate_words([advice.pitfall.title.lower() for advice in found[MOST:]])
        note += f" {len(found) - MOST} more that cost less are in summary.json: {names}."
    return ["## Advice", note, "\n".join(lines)]


def told_of_advice(found: Sequence[Advice], findings: Findings) -> list[tuple[str, str]]:
    """Each piece, the costliest first: what is wrong, and then what it costs and what to try."""
    return [(_what(advice, findings), _why(advice, findings)) for advice in found]


def tried(advice: Advice) -> str:
    """`Try `engine.kv_blocks = 64`.`, of a piece that has a setting to try; else nothing."""
    settings = [f"`{setting}`" for setting in _lines(advice.worst.settings)]
    return f" Try {enumerate_words(settings)}." if settings else ""


def in_short(found: Sequence[Advice], findings: Findings) -> list[str]:
    """The most important, a line each, for the end of a run."""
    worth = [advice for advice in found if advice.cost >= WORTH_A_LINE][:MOST_IN_SHORT]
    lines = [
        f"advice: {advice.pitfall.title.lower()} ({_place(advice.arms[0], findings)}): {advice.worst.what}"
        + (f"; try {_plain(advice.worst.settings)}" if advice.worst.settings else "")
        for advice in worth
    ]
    more = len(found) - len(worth)
    return [*lines, *([f"advice: {more} more in comparison.md"] if lines and more else [])]


def advice_json(found: Sequence[Advice]) -> list[dict[str, Any]]:
    """All of it, arm by arm."""
    return [
        {
            "pitfall": advice.pitfall.name,
            "title": advice.pitfall.title,
            "cost": advice.cost,
            "figure": advice.pitfall.figure,
            "cases": [
                {
                    "cells": arm.names,
                    "figure": case.figure,
                    "cost": case.cost,
                    "what": case.what,
                    "why": case.why,
                    "try": dict(case.settings),
                    "remedy": case.remedy,
                }
                for arm, case in advice.cases
            ],
        }
        for advice in found
    ]


def _what(advice: Advice, findings: Findings) -> str:
    """`**Memory is short** (continuous, fifo): ...`"""
    return f"**{advice.pitfall.title}** ({_place(advice.arms[0], findings)}): {advice.worst.what}."


def _why(advice: Advice, findings: Findings) -> str:
    """`... Try `engine.kv_blocks = 64`: ... Found as well in ...`"""
    worst, pitfall = advice.worst, advice.pitfall
    settings = enumerate_words([f"`{setting}`" for setting in _lines(worst.settings)])
    tried = f" Try {settings}: {worst.remedy}." if settings else f" {worst.remedy[0].upper()}{worst.remedy[1:]}."
    text = f"{worst.why}.{tried}"
    others = advice.cases[1:]
    if others:
        figures = [case.figure for _, case in others]
        extent = " to ".join(dict.fromkeys(pitfall.write(end) for end in (min(figures), max(figures))))
        also = where([arm for arm, _ in others], advice.arms[0], findings)
        text += f" Found as well in {also} ({extent} {pitfall.figure})."
    return text


def _lines(settings: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {toml_text(value) if value != {} else '{}'}" for key, value in settings.items()]


def _plain(settings: Mapping[str, Any]) -> str:
    return ", ".join(_lines(settings))


def _place(arm: Arm, findings: Findings) -> str:
    """`continuous, fifo`."""
    return f"{arm.trace}, {arm.label}" if len(findings.traces) > 1 else arm.label


def where(arms: Sequence[Arm], first: Arm, findings: Findings) -> str:
    """`dynamic under every policy; static under the other 4`; of many places, how many there are.

    `first` is the arm that was told of already.
    """
    places: dict[str, list[str]] = {}
    for arm in arms:
        places.setdefault(_setting(arm, findings), []).append(arm.policy)
    alike: dict[str, list[str]] = {}
    for setting, policies in places.items():
        all_of = [arm.policy for arm in findings.arms if _setting(arm, findings) == setting]
        rest = len(all_of) - (setting == _setting(first, findings))
        alike.setdefault(_under(policies, len(all_of), rest), []).append(setting)
    if len(alike) > MOST_CLAUSES:
        return f"{len(arms)} other combinations of {len(findings.arms)}"
    return "; ".join(
        f"{enumerate_words(settings) if len(settings) <= MOST_CLAUSES else f'{len(settings)} settings'} {under}"
        for under, settings in alike.items()
    )


def _setting(arm: Arm, findings: Findings) -> str:
    return f"{arm.trace}, {arm.setting}" if len(findings.traces) > 1 else arm.setting


def _under(policies: Sequence[str], all_of: int, rest: int) -> str:
    """Policies by name where they are few; `rest` are those of the setting that were not told of already."""
    if len(policies) == rest > 1:
        return "under every policy" if rest == all_of else f"under the other {rest} policies"
    if len(policies) <= MOST_CLAUSES:
        return f"under {enumerate_words(list(policies))}"
    return f"under {len(policies)} of {all_of} policies"

"""A setting that was given and never reached: what it limits was limited by something else, or by nothing."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any

from replay.metrics.arms import Arm
from replay.metrics.notation import enumerate_words, percent
from replay.report.advice.evidence import SIZES, enough, key_of_size, settings, size_of, value
from replay.report.advice.memory_short import SCARCE
from replay.report.advice.registry import Case, pitfall
from replay.report.findings import Findings

REACHED = 0.25
"""Part of a setting: where not even a quarter of it was used, other values give the same run, and not by a hair."""
SPARE = 1.25
"""Times what was reached: what is proposed instead."""
COST = 0.001
"""Nothing was lost to it but memory and a mistaken belief: it stands behind all else."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A setting, and the figure of a cell that reaches it."""

    key: str
    given: int
    metric: str
    reached: str  # what was reached, with its unit


@pitfall(
    "never_reached",
    "A setting was never reached",
    speaks=f"of settings that stand in the experiment: less than {percent(REACHED)} of `max_running` resident, of "
    "`kv_blocks` used, of `token_budget` computed in a step, or of `max_waiting` waiting, in every cell that had the "
    "setting",
    remedy=f"the same setting at {SPARE:g} times what was reached, which changes nothing in the run but the memory; or "
    "more load",
    figure="of the setting reached",
    write=percent,
)
def never_reached(arm: Arm, findings: Findings) -> Case | None:
    """the most that was ever reached of each setting, over all cells that had it"""
    if not enough(arm, findings):
        return None
    given = _given(findings.run.folder)
    found = [
        (limit, peak)
        for limit in _limits(arm, short=value(findings, arm, "bound_by_blocks") >= SCARCE)
        if _stands(given, limit.key) and (peak := _peak(limit, findings)) is not None and peak < REACHED * limit.given
    ]
    if not found:
        return None
    said = [
        f"{limit.key.rpartition('.')[2]} {limit.given:,} (at most {peak:,} {limit.reached})" for limit, peak in found
    ]
    return Case(
        figure=min(peak / limit.given for limit, peak in found),
        cost=COST * len(found),
        what=f"not a quarter of {enumerate_words(said)} was ever used",
        why="No policy could differ by what such a setting limits, and a comparison of values above what was reached "
        "compares a run with itself",
        settings={limit.key: max(1, ceil(SPARE * peak)) for limit, peak in found},
        remedy="the run stays the same; to see the setting at work it takes more load",
    )


def _limits(arm: Arm, *, short: bool = False) -> list[Limit]:
    """The settings of an arm; where memory was `short`, that and not the load kept slots free."""
    engine, mode = settings(arm, "engine"), settings(arm, "mode")
    found = []
    if (size := size_of(arm)) is not None and arm.mode in SIZES and not short:
        found.append(Limit(key_of_size(arm), size, "resident", "resident"))
    if (blocks := arm.cells[0].blocks) and not engine.get("memory_utilization"):
        found.append(Limit("engine.kv_blocks", blocks, "kv_use", "used"))
    if budget := mode.get("token_budget"):
        found.append(Limit(f"modes.{arm.mode}.token_budget", budget, "tokens_per_step", "in a step"))
    if waiting := engine.get("max_waiting"):
        found.append(Limit("engine.max_waiting", waiting, "waiting", "waiting"))
    return found


def _peak(limit: Limit, findings: Findings) -> int | None:
    """The most of it over all arms that have the same setting; None where one does not say."""
    peaks = []
    for other in findings.arms:
        if any(each.key == limit.key and each.given == limit.given for each in _limits(other)):
            highest = findings.values.repeats(other, limit.metric, "max")
            if not highest or other.mark:
                return None
            peaks.append(max(highest) * (limit.given if limit.metric == "kv_use" else 1))
    return round(max(peaks)) if peaks else None


@lru_cache(maxsize=1)
def _given(folder: Path) -> dict[str, Any]:
    """The experiment as it was given; empty where it is not there."""
    file = folder / "experiment.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _stands(given: dict[str, Any], key: str) -> bool:
    *sections, name = key.split(".")
    for section in sections:
        given = given.get(section) or {}
        if not isinstance(given, dict):
            return False
    return name in given

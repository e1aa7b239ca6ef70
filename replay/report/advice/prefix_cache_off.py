"""Prompts begin alike, and each is computed in full because the prefix cache is off."""

from __future__ import annotations

from replay.metrics.arms import Arm
from replay.metrics.notation import duration, percent
from replay.report.advice.evidence import enough, real, rows, settings
from replay.report.advice.registry import Case, pitfall
from replay.report.findings import Findings

SHARED = 0.1
"""Share of prompt tokens that an earlier prompt had in the same place, by the trace's hashes."""
SAVED = 0.02
"""Share of the steps' time below which computing them again is hardly felt."""


@pitfall(
    "prefix_cache_off",
    "Prompts begin alike, and the prefix cache is off",
    speaks=f"from {percent(SHARED)} of prompt tokens that an endless cache would have, and {percent(SAVED)} of the "
    "steps' time to compute them by the cost model; not where the cache was on in another cell of the trace",
    remedy="`engine.prefix_cache = true`",
    figure="of the steps' time",
    write=percent,
)
def prefix_cache_off(arm: Arm, findings: Findings) -> Case | None:
    """prompt tokens that stand in an earlier prompt too, by the trace's prefix hashes, and the seconds that they take
    (continuous mode: the others have no prefix cache)"""
    cells = [cell for cell in findings.run.cells if cell.trace == arm.trace]
    if any((cell.settings.get("engine") or {}).get("prefix_cache") for cell in cells):
        return None  # the comparison of settings tells what it brings
    shared = findings.run.trace(arm.trace).shared_prompts
    cost = (arm.cells[0].cost or {}).get("prefill")
    padded = any(cell.padded for cell in arm.cells)
    if padded or not shared or shared < SHARED or not cost or not enough(arm, findings):
        return None
    steps = rows(arm, "steps", "launched", "end", "prefill_tokens")
    tokens = rows(arm, "requests", "prompt_tokens", "admitted").drop_nulls("admitted")["prompt_tokens"]
    busy = real((steps["end"] - steps["launched"]).sum())
    pace = findings.values.value(arm, "pace", "value") or 1.0
    seconds = pace * cost * shared * real(tokens.sum())
    if not busy or seconds < SAVED * busy:
        return None
    size = settings(arm, "engine").get("block_size")
    return Case(
        figure=seconds / busy,
        cost=seconds / busy,
        what=f"{percent(shared)} of the prompt tokens of {arm.trace} stand in an earlier prompt too, and all were "
        "computed",
        why=f"By the cost model they took {duration(seconds)} of the {duration(busy)} that steps were computed "
        f"({percent(seconds / busy)})",
        settings={"engine.prefix_cache": True},
        remedy="so much an endless cache saves; a real one finds whole blocks only"
        + (f" (of {size} tokens)" if size else "")
        + ", while the KV pool has room to keep them",
    )

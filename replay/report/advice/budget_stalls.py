"""Prompts make steps so long that everybody who is being answered stalls: the token budget lets in too much."""

from __future__ import annotations

from math import ceil

import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.notation import duration, number, percent
from replay.report.advice.evidence import enough, of_arm, real, rows, settings
from replay.report.advice.registry import Case, pitfall
from replay.report.findings import Findings

STALLED = 0.05
"""Share of all gaps between tokens: the worst twentieth is what p95 shows."""
LONGER = 3
"""So many times a step without prompts: less is no stall."""
WITHOUT_GOAL = 5
"""The same where no goal for the time per token says what is too long."""
LEAST_GAPS = 100
LESS = 0.75
"""Of the budget in force: one that is hardly smaller changes hardly anything."""
SPARE = 1.5
"""Times the prompt tokens that a step must compute on average: with less, prompts would queue up."""


@pitfall(
    "budget_stalls",
    "Prompts stall those who are being answered",
    speaks=f"from {percent(STALLED)} of the gaps between tokens (of {LEAST_GAPS} or more) in steps with prompts that "
    f"take longer than `goals.tpot_ms` and {LONGER} times a step without (no goal: {WITHOUT_GOAL} times), where a "
    f"budget of at most {percent(LESS)} keeps to that and still computes {SPARE:g} times the prompt tokens that come",
    remedy='`modes.continuous.token_budget`: what keeps such a step within the goal; and `prefill = "chunked"`',
    figure="of the gaps between tokens",
    write=percent,
)
def budget_stalls(arm: Arm, findings: Findings) -> Case | None:
    """seconds of steps that compute prompts beside answers, against those of steps without prompts; the requests whose
    longest gap between tokens is such a step (continuous mode)"""
    cost, mode = arm.cells[0].cost, settings(arm, "mode")
    budget = mode.get("token_budget")
    if cost is None or not budget or not cost.get("prefill") or not enough(arm, findings):
        return None
    seconds = pl.col("end") - pl.col("launched")
    steps = rows(arm, "steps", "launched", "end", "prefill_tokens", "decodes", "context_tokens").with_columns(
        seconds=seconds
    )
    decoding = steps.filter(pl.col("decodes") > 0)
    plain = decoding.filter(pl.col("prefill_tokens") == 0)["seconds"].median()
    gaps, goal = int(decoding["decodes"].sum()), findings.run.goals.tpot
    if not isinstance(plain, float) or gaps < LEAST_GAPS:
        return None
    limit = max(goal, LONGER * plain) if goal else WITHOUT_GOAL * plain
    stalls = decoding.filter(pl.col("prefill_tokens") > 0, pl.col("seconds") > limit)
    stalled = int(stalls["decodes"].sum()) / gaps
    if stalled < STALLED:
        return None
    target = goal if goal and goal > plain else LONGER * plain
    pace = findings.values.value(arm, "pace", "value") or 1.0
    decodes, context = (real(stalls[name].mean()) for name in ("decodes", "context_tokens"))
    spare = target / pace - cost["fixed"] - cost.get("decode", 0.0) * decodes - cost.get("context", 0.0) * context
    block = int(settings(arm, "engine").get("block_size") or 16)
    smaller = int(spare / cost["prefill"] + decodes) // block * block
    chunk = smaller - ceil(decodes)
    needed = real(steps["prefill_tokens"].sum()) / len(steps)
    if smaller > LESS * budget or chunk < max(block, SPARE * needed):
        return None
    longest = of_arm(findings.measured.requests, arm)["max_gap"].drop_nulls()
    hit = real((longest > limit).mean())
    prompt = real(rows(arm, "requests", "prompt_tokens")["prompt_tokens"].quantile(0.95, "linear"))
    keys = {"modes.continuous.token_budget": smaller}
    whole: dict[str, str] = {"modes.continuous.prefill": "chunked"} if mode.get("prefill") == "whole" else {}
    return Case(
        figure=stalled,
        cost=stalled,
        what=f"{percent(stalled)} of the gaps between tokens were steps that computed prompts too and took over "
        f"{duration(limit)}; a step without prompts takes {duration(plain)}",
        why=f"The longest of them took {duration(real(stalls['seconds'].max()))}, and {percent(hit)} of requests had a "
        "gap so long at least once",
        settings=whole | keys,
        remedy=f"by the cost model such a step then takes at most {duration(target)}, for {chunk:,} prompt tokens "
        f"beside {number(decodes, 2)} answers; a prompt of {prompt:,.0f} tokens (p95) takes "
        f"{ceil(prompt / chunk)} steps instead of "
        + ("1" if whole else f"{ceil(prompt / max(budget - decodes, 1))}")
        + ", so its own first token comes later",
    )

"""The policy itself takes requests off the engine, with memory to spare, and what they had computed is lost."""

from __future__ import annotations

from replay.metrics.arms import Arm
from replay.metrics.contrasts import BASE_POLICY
from replay.metrics.notation import duration, number, percent, plural
from replay.report.advice.evidence import enough, real, rows, value
from replay.report.advice.memory_short import SCARCE
from replay.report.advice.registry import Case, pitfall
from replay.report.findings import Findings

RECOMPUTED = 0.1
"""Share of all tokens computed that were computed again: below, preemption pays for itself more often than not."""


@pitfall(
    "work_thrown_away",
    "The policy throws work away",
    speaks=f"from {percent(RECOMPUTED)} of tokens computed again, where blocks refused somebody for less than "
    f"{percent(SCARCE)} of the time, so that it was not memory",
    remedy="`engine.swap_gb`: host memory, from which work is copied back in place of being computed again",
    figure="of tokens computed again",
    write=percent,
)
def work_thrown_away(arm: Arm, findings: Findings) -> Case | None:
    """evictions and tokens computed again where memory is not short (continuous mode: the others evict nobody)"""
    if not enough(arm, findings) or value(findings, arm, "bound_by_blocks") >= SCARCE:
        return None
    requests = rows(arm, "requests", "evictions", "recomputed_tokens")
    evictions, again = int(requests["evictions"].sum()), int(requests["recomputed_tokens"].sum())
    computed = rows(arm, "steps", "prefill_tokens", "decodes").sum().sum_horizontal().item()
    if not computed or again < RECOMPUTED * computed:
        return None
    cost = (arm.cells[0].cost or {}).get("prefill")
    seconds = f", {duration(again * cost)} by the cost model" if cost else ""
    mine = value(findings, arm, "output_throughput")
    alike = [each for each in findings.compared if (each.trace, each.setting) == (arm.trace, arm.setting)]
    base = next((value(findings, each, "output_throughput") for each in alike if each.policy == BASE_POLICY), None)
    against = f"; {BASE_POLICY} serves {number(base)} output tokens/s here, {arm.policy} {number(mine)}" if base else ""
    return Case(
        figure=again / computed,
        cost=again / computed,
        what=f"{plural(evictions, 'eviction')} of {len(requests):,} requests (one of them "
        f"{int(real(requests['evictions'].max()))} times), with at most "
        f"{percent(value(findings, arm, 'kv_use', 'max'))} of the KV pool in use",
        why=f"{again:,} tokens were computed again ({percent(again / computed)} of all{seconds}){against}",
        settings={"engine.swap_gb": 1.0},
        remedy="what is put aside is then copied to host memory and back, as far as that holds it, and not computed "
        "again",
    )

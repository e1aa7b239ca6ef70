"""The KV pool holds less than the batch asks for: requests wait for memory, or lose it and are computed again."""

from __future__ import annotations

from math import ceil, floor

import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.notation import duration, number, percent, plural
from replay.report.advice.evidence import asked, enough, key_of_size, real, rows, settings, size_of, step_model, value
from replay.report.advice.registry import Case, pitfall
from replay.report.findings import Findings

EVICTED = 0.1
"""Evictions for each request: below, they are accidents."""
RECOMPUTED = 0.05
"""Share of all tokens computed that were computed again."""
SCARCE = 0.05
"""Share of the time in which blocks refused somebody, below which evictions are the policy's own will."""
BOUND = 0.3
"""Share of the time in which blocks refused somebody, where requests queue."""
QUEUED = 0.1
SLACK = 1.25
"""Times the pool, or the slots, at least: where the mean request fits and longer ones do not."""
THRASHED = 3
"""Evictions of one request from which it is said that it was thrown out again and again."""


@pitfall(
    "memory_short",
    "Memory is short",
    speaks=f"where blocks refused somebody for {percent(SCARCE)} of the time: from {EVICTED} evictions a request, "
    f"{percent(RECOMPUTED)} of tokens computed again, or {percent(BOUND)} of the time bound by blocks with "
    f"{percent(QUEUED)} of requests queued; {THRASHED} evictions of one request are told",
    remedy="`engine.kv_blocks` for as many requests of the trace's lengths as are of use: of those that wait or run, "
    "as many as carry the load or keep the goal by the cost model; where the pool holds so many, or "
    "`memory_utilization` sizes it, the `modes.continuous.max_running` that fits",
    figure="of the time bound by blocks",
    write=percent,
)
def memory_short(arm: Arm, findings: Findings) -> Case | None:
    """evictions, tokens computed again and time in which KV blocks refused a request (continuous mode: the others
    reserve memory for a whole batch)"""
    size, pool = size_of(arm), arm.cells[0].blocks
    if size is None or not pool or not enough(arm, findings) or any(cell.padded for cell in arm.cells):
        return None
    requests = rows(arm, "requests", "evictions", "recomputed_tokens", "prompt_tokens", "output_tokens")
    evictions, again = int(requests["evictions"].sum()), int(requests["recomputed_tokens"].sum())
    computed = rows(arm, "steps", "prefill_tokens", "decodes").sum().sum_horizontal().item()
    bound = value(findings, arm, "bound_by_blocks")
    evicts = evictions >= EVICTED * len(requests) or again >= RECOMPUTED * computed > 0
    if bound < SCARCE or (not evicts and (bound < BOUND or value(findings, arm, "queued") < QUEUED)):
        return None
    held = _held(requests, int(settings(arm, "engine").get("block_size") or 16))
    wanted = _wanted(arm, findings, size)
    if not evicts and wanted <= _fitting(pool, held):
        return None  # who waits for memory would be of no use in the batch
    empty = 1 - min(1.0, value(findings, arm, "resident", "mean") / min(size, wanted))
    parts = [f"blocks refused somebody {percent(bound)} of the time"]
    if evictions:
        parts.append(f"{plural(evictions, 'eviction')} of {len(requests):,} requests")
    if (most := int(real(requests["evictions"].max()))) >= THRASHED:
        parts.append(f"one request was thrown out {most} times")
    return Case(
        figure=bound,
        cost=min(1.0, again / max(computed, 1) + bound * empty),
        what=f"{', '.join(parts)}, with {pool:,} KV blocks",
        why=_why(arm, findings, again, computed, size),
        settings=_settings(arm, pool, size, wanted, held),
        remedy=_remedy(arm, pool, size, wanted, held),
    )


def _held(requests: pl.DataFrame, block_size: int) -> float:
    """Blocks of a resident request as it ends, on average over the time that they are resident: long ones stay long."""
    blocks = ((pl.col("prompt_tokens") + pl.col("output_tokens")) / block_size).ceil()
    stay = pl.col("output_tokens")
    return float(requests.select((blocks * stay).sum() / stay.sum()).item())


def _wanted(arm: Arm, findings: Findings, size: int) -> int:
    """The most requests that were resident or wanted to be at once, and may be, as far as more of them are of use."""
    steps, model = rows(arm, "steps", "running", "waiting"), step_model(arm, findings)
    most = min(size, int(real((steps["running"] + steps["waiting"]).max())) or size)
    return most if model is None else min(most, ceil(model.useful(asked(arm), findings.run.goals.tpot)))


def _why(arm: Arm, findings: Findings, again: int, computed: int, size: int) -> str:
    resident = value(findings, arm, "resident", "mean")
    texts = [f"{number(resident)} of {size} slots were held on average"]
    if again:
        cost = (arm.cells[0].cost or {}).get("prefill")
        seconds = f", {duration(again * cost)} by the cost model" if cost else ""
        texts.insert(0, f"{again:,} tokens were computed again ({percent(again / computed)} of all{seconds})")
    swaps = int(rows(arm, "requests", "swaps")["swaps"].sum())
    if swaps:
        texts.insert(0, f"{swaps:,} times a request was copied to host memory and back")
    text = ", and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
    return text[0].upper() + text[1:]


def _fitting(pool: int, held: float) -> int:
    return max(1, floor(pool / held))


def _settings(arm: Arm, pool: int, size: int, wanted: int, held: float) -> dict[str, int]:
    fitting, fixed = _fitting(pool, held), bool(settings(arm, "engine").get("memory_utilization"))
    if not fixed and (wanted > fitting or fitting >= size):
        return {"engine.kv_blocks": max(ceil(wanted * held), ceil(SLACK * pool))}
    return {key_of_size(arm): min(fitting, max(1, floor(size / SLACK)))}


def _remedy(arm: Arm, pool: int, size: int, wanted: int, held: float) -> str:
    fitting, full = _fitting(pool, held), f"at their full length ({number(held)} blocks for the mean resident one)"
    if "engine.kv_blocks" not in _settings(arm, pool, size, wanted, held):
        more = f"; by the cost model, more than {wanted} in a step are of no use" if wanted <= fitting else ""
        return f"{fitting} requests fit {full}, so that hardly any is evicted for another{more}"
    text = f"that holds {wanted} requests {full}"
    if fitting < size:
        text += f"; with the memory that there is, `{key_of_size(arm)} = {fitting}` is as many as fit"
    return text

"""What `replay plan` found, as text for reading and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from replay.executors.pool_size import GIB, SPARE_BLOCKS, blocks_of
from replay.executors.torch.probing.accounting import ITEMSIZES
from replay.planning import Plan
from replay.traces.describing.demand import larger_than, occupancy, request_tokens, together
from replay.traces.table import Trace

SHORTEST, LONGEST = 256, 131_072  # tokens, of the contexts that are shown when none is asked for
SIZES = ("mean", "p50", "p99", "max")
COUNTS = (1, 8, 16, 32, 64, 128, 256, 512, 1024)  # requests at once


def shown_contexts(plan: Plan, asked: Sequence[int]) -> list[int]:
    """Those asked for, or the powers of two up to what the model can take."""
    longest = plan.facts.context or LONGEST
    powers = [2**power for power in range(SHORTEST.bit_length() - 1, LONGEST.bit_length())]
    return list(asked) or [power for power in powers if power <= longest] or [longest]


def plan_text(plan: Plan, asked: Sequence[int], kv_blocks: int | None) -> str:
    """The arithmetic, a line a quantity, and a table of batches. `kv_blocks`: what an experiment asks for instead."""
    pool, facts = plan.pool, plan.facts
    size = ITEMSIZES[plan.dtype]
    where = "a device that is not here" if plan.device is None else f"{plan.device}, which is here"
    available = " available now" if plan.device == "cpu" else ""
    tokens, samples = plan.step
    lines = [
        ("model", f"{facts.name} in {plan.dtype}, on {where}"),
        ("weights", f"{pool.weights / GIB:.2f} GiB = {facts.parameters:,} parameters x {size} bytes"),
        (
            "workspace",
            f"{pool.workspace / GIB:.2f} GiB, an estimate: a step of {tokens:,} tokens, {samples:,} of them sampled",
        ),
        ("memory", f"{pool.memory / GIB:.2f} GiB{available}, of which {pool.utilization:g} may be in use"),
        ("KV pool", pool.arithmetic()),
        (
            "KV per token",
            f"{pool.token_bytes:,} bytes = {facts.shape.kv_arithmetic(ITEMSIZES[plan.kv_dtype])} ({plan.kv_dtype})",
        ),
        (
            "KV blocks",
            f"{pool.blocks:,} of {pool.block_size} tokens, beside {SPARE_BLOCKS} for padding: {pool.tokens:,} tokens",
        ),
    ]
    if not pool.blocks:
        lines.append(("", "no block fits: a larger share or device, a smaller model or a narrower dtype is needed"))
    if kv_blocks is not None:
        needed = (kv_blocks + SPARE_BLOCKS) * pool.block_bytes
        verdict = "fits" if kv_blocks <= pool.blocks else "does not fit"
        lines.append(("asked for", f"kv_blocks = {kv_blocks:,}, {needed / GIB:.2f} GiB: {verdict}"))
    text = [f"{label:<14}{value}" for label, value in lines]
    text += ["", f"{'context':>10}  {'blocks each':>11}  {'largest batch':>13}"]
    for context in shown_contexts(plan, asked):
        beyond = facts.context is not None and context > facts.context
        remark = f"  (the model can take {facts.context:,})" if beyond else ""
        text.append(f"{context:>10,}  {blocks_of(context, pool.block_size):>11,}  {pool.batch(context):>13,}{remark}")
    return "\n".join(text)


def plan_facts(plan: Plan, asked: Sequence[int]) -> dict[str, Any]:
    """The same as values: bytes, blocks and tokens."""
    pool = plan.pool
    return {
        "model": plan.facts.name,
        "parameters": plan.facts.parameters,
        "dtype": plan.dtype,
        "kv_dtype": plan.kv_dtype,
        "device": plan.device,
        **asdict(pool),
        "left": pool.left,
        "blocks": pool.blocks,
        "tokens": pool.tokens,
        "batches": {str(context): pool.batch(context) for context in shown_contexts(plan, asked)},
    }


def demand_facts(trace: Trace, blocks: int, block_size: int, speed: tuple[float, float] | None) -> dict[str, Any]:
    """What a trace asks of a pool: lengths, requests at once, and what is resident over time at a `speed`: seconds to
    the first token, and for each further one."""
    sizes = request_tokens(trace)
    return {
        "trace": trace.name,
        "requests": trace.frame.height,
        "request_tokens": sizes,
        "pool_tokens": blocks * block_size,
        "batches": {name: blocks // blocks_of(round(sizes[name]), block_size) for name in SIZES},
        "never_fit": larger_than(trace, blocks * block_size),
        "together": [asdict(row) for row in together(trace, block_size, COUNTS)],
        "speed": None if speed is None else {"ttft_s": speed[0], "tpot_s": speed[1]},
        "over_time": None if speed is None else asdict(occupancy(trace, ttft=speed[0], tpot=speed[1])),
    }


def demand_text(found: dict[str, Any], kv_blocks: int | None) -> str:
    """`demand_facts` for reading. `kv_blocks`: what an experiment asks for, which its pool is then."""
    sizes, pool = found["request_tokens"], found["pool_tokens"]
    shown = ", ".join(f"{name} {sizes[name]:,.0f}" for name in SIZES)
    whose = "of the pool above" if kv_blocks is None else f"of kv_blocks = {kv_blocks:,}"
    text = [
        f"{'trace':<14}{found['trace']}: {found['requests']:,} requests; prompt and answer: {shown} tokens",
        f"{'batch':<14}" + ", ".join(f"{found['batches'][name]:,} of {name} length" for name in SIZES),
    ]
    if found["never_fit"]:
        text.append(f"{'too large':<14}{found['never_fit']:,} requests are larger than the whole pool")
    text += ["", f"{'at once':>10}  {'of mean length':>14}  {'share':>7}  {'the largest':>14}  {'share':>7}  {whose}"]
    for row in found["together"]:
        mean, largest = row["mean_tokens"], row["largest_tokens"]
        text.append(
            f"{row['requests']:>10,}  {mean:>14,.0f}  {_share(mean, pool):>7}  {largest:>14,}  "
            f"{_share(largest, pool):>7}"
        )
    if (speed := found["speed"]) is not None:
        over = found["over_time"]
        first, each = 1000 * speed["ttft_s"], 1000 * speed["tpot_s"]
        text += [
            "",
            f"over time, if a first token takes {first:g} ms, each further one {each:g} ms, and nobody waits:",
            f"  requests at once  mean {over['mean_requests']:,.1f} (Little's law), peak {over['peak_requests']:,}",
            f"  tokens at once    mean {over['mean_tokens']:,.0f}, peak {over['peak_tokens']:,.0f}: "
            f"{_share(over['peak_tokens'], pool)} {whose}",
        ]
    return "\n".join(text)


def _share(tokens: float, pool: int) -> str:
    """Tokens as a share of the pool; a dash where there is none."""
    return f"{tokens / pool:.1%}" if pool else "-"

"""The batch is so large that tokens come too slowly, and a smaller one would serve no fewer of them."""

from __future__ import annotations

from math import floor

from replay.metrics.arms import Arm
from replay.metrics.notation import duration, number, percent
from replay.report.advice.evidence import (
    enough,
    key_of_size,
    missed_tpot,
    siblings,
    size_of,
    step_model,
    value,
)
from replay.report.advice.registry import Case, pitfall
from replay.report.findings import Findings

MISSED = 0.1
"""Share of requests over the goal for the time per token: fewer may be a few unlucky ones."""
FLAT = 0.1
"""Of tokens per second: what is lost at the smaller size may be no more, else both have a price and it is a choice."""


@pitfall(
    "batch_too_large",
    "The batch is too large",
    speaks=f"from {percent(MISSED)} of requests over `goals.tpot_ms`, where a smaller size costs at most "
    f"{percent(FLAT)} of output tokens/s: by a swept size with as much fewer misses, else by the cost model",
    remedy="the smaller size: of the mode's `max_running`, `max_batch_size` or `batch_size`",
    figure="of requests over the goal",
    write=percent,
)
def batch_too_large(arm: Arm, findings: Findings) -> Case | None:
    """share of requests whose time per token exceeds the goal; output tokens/s at other sizes that were run, or what
    the cost model gives a step with fewer requests in it (continuous mode)"""
    missed, size = missed_tpot(arm, findings), size_of(arm)
    if missed is None or missed < MISSED or size is None or not enough(arm, findings):
        return None
    swept = siblings(arm, findings)
    return _swept(arm, findings, missed, size, swept) if swept else _modelled(arm, findings, missed, size)


def _what(findings: Findings, missed: float, size: int, arm: Arm) -> str:
    key = key_of_size(arm).rpartition(".")[2]
    goal = duration(findings.run.goals.tpot)
    return f"{percent(missed)} of requests take longer than {goal} a token at {key} {size}"


def _swept(arm: Arm, findings: Findings, missed: float, size: int, swept: list[Arm]) -> Case | None:
    rate = value(findings, arm, "output_throughput")
    better = []
    for other in swept:
        fewer = missed_tpot(other, findings)
        flat = value(findings, other, "output_throughput") >= (1 - FLAT) * rate
        if fewer is not None and missed - fewer >= MISSED and flat and (size_of(other) or size) < size:
            better.append((fewer, -value(findings, other, "output_throughput"), other))
    if not better:
        return None
    fewer, faster, best = min(better, key=lambda each: each[:2])
    return Case(
        figure=missed,
        cost=missed - fewer,
        what=_what(findings, missed, size, arm),
        why=f"It serves {number(rate)} output tokens/s; at {size_of(best)}, run here too, it is {number(-faster)} with "
        f"{percent(fewer)} of requests over the goal",
        settings={key_of_size(arm): size_of(best)},
        remedy=f"mean TTFT went from {duration(findings.values.value(arm, 'ttft', 'mean'))} to "
        f"{duration(findings.values.value(best, 'ttft', 'mean'))}",
    )


def _modelled(arm: Arm, findings: Findings, missed: float, size: int) -> Case | None:
    model, goal = step_model(arm, findings), findings.run.goals.tpot
    resident = findings.values.value(arm, "batch_size", "p90")  # of the large batches, for these are what is missed by
    if model is None or goal is None or resident is None or model.slot <= 0 or model.seconds(resident) <= goal:
        return None
    smaller = floor((goal - model.fixed) / model.slot)
    if smaller < 1 or smaller >= size:
        return None
    kept = model.rate(smaller) / model.rate(resident)
    if kept < 1 - FLAT:
        return None
    return Case(
        figure=missed,
        cost=missed,
        what=_what(findings, missed, size, arm),
        why=f"A step with {number(resident, 2)} requests takes {duration(model.seconds(resident))} by the cost model, "
        f"and with {smaller} {duration(model.seconds(smaller))}",
        settings={key_of_size(arm): smaller},
        remedy=f"by the cost model that keeps {percent(min(kept, 1.0))} of the {number(model.rate(resident))} output "
        "tokens/s; who does not fit waits in the queue instead",
    )

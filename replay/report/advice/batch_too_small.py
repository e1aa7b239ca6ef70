"""Requests wait for a slot while a step takes far less than it may: more of them could share it."""

from __future__ import annotations

from replay.metrics.arms import Arm
from replay.metrics.notation import duration, number, percent
from replay.report.advice.evidence import (
    CARRIES,
    GAIN,
    HEADROOM,
    StepModel,
    asked,
    enough,
    key_of_size,
    missed_tpot,
    of_arm,
    real,
    rows,
    siblings,
    size_of,
    step_model,
    value,
)
from replay.report.advice.registry import Case, pitfall
from replay.report.findings import Findings

BOUND = 0.2
"""Share of the time in which slots refused somebody: below, a larger batch would seldom be used."""
QUEUED = 0.1
"""Share of requests that waited beyond a step that could have admitted them."""
MISSED = 0.1
"""Where more requests than these miss the per-token goal already, a larger batch is not advised."""


@pitfall(
    "batch_too_small",
    "The batch is too small",
    speaks=f"from {percent(BOUND)} of the time bound by slots and {percent(QUEUED)} of requests queued, where twice "
    f"the size brings {percent(GAIN)} more output tokens/s by the cost model, keeps a mean step within "
    f"{percent(HEADROOM)} of `goals.tpot_ms`, and has room in the KV pool; not where a larger size was run too",
    remedy="`modes.continuous.max_running`, doubled while all of that holds and so many wait, until it "
    f"serves {CARRIES:g} times what is asked for",
    figure="of the time bound by slots",
    write=percent,
)
def batch_too_small(arm: Arm, findings: Findings) -> Case | None:
    """time in which slots refused a request, requests that queued, what a step takes with twice as many in it, and how
    full the KV pool was (continuous mode)"""
    model, size = step_model(arm, findings), size_of(arm)
    bound, queued = value(findings, arm, "bound_by_slots"), value(findings, arm, "queued")
    if model is None or size is None or not enough(arm, findings) or bound < BOUND or queued < QUEUED:
        return None
    if any((size_of(other) or 0) > size for other in siblings(arm, findings)):
        return None  # what more slots bring was measured, and the comparison of settings tells it
    if (missed_tpot(arm, findings) or 0.0) > MISSED:
        return None
    larger = _larger(arm, findings, model, size)
    return None if larger is None else _case(arm, findings, model, size, larger)


def _larger(arm: Arm, findings: Findings, model: StepModel, size: int) -> int | None:
    """The size doubled while it pays, keeps the goal, finds memory, and somebody waits for the slots."""
    goal, steps = findings.run.goals.tpot, rows(arm, "steps", "running", "waiting", "used_blocks")
    wanted = real((steps["running"] + steps["waiting"]).max())
    wish, pool, used = asked(arm), arm.cells[0].blocks, value(findings, arm, "kv_use", "max")
    larger = size
    while larger < wanted:
        twice = 2 * larger
        pays = model.rate(twice) >= (1 + GAIN) * model.rate(larger)
        kept = goal is None or model.seconds(twice) <= HEADROOM * goal
        fits = pool is None or used * twice / size <= 1
        carries = larger > size and model.rate(larger) >= CARRIES * wish
        if carries or not (pays and kept and fits):
            break
        larger = twice
    return larger if larger > size else None


def _case(arm: Arm, findings: Findings, model: StepModel, size: int, larger: int) -> Case:
    goal, bound = findings.run.goals.tpot, value(findings, arm, "bound_by_slots")
    waits = of_arm(findings.measured.requests, arm)["queue_wait"].drop_nulls()
    allowed = "" if goal is None else f" of the {duration(goal)} that the goal allows"
    gain = model.rate(larger) / model.rate(size)
    wish = asked(arm)
    short = f", still less than the {number(wish)} that are asked for" if wish > model.rate(larger) else ""
    return Case(
        figure=bound,
        cost=bound * (1 - 1 / gain),
        what=f"{percent(value(findings, arm, 'queued'))} of requests queued, and slots were what they lacked "
        f"{percent(bound)} of the time, at max_running {size}",
        why=f"They waited {duration(real(waits.mean()))} on average, while a step of {size} took "
        f"{duration(model.seconds(size))}{allowed} and at most {percent(value(findings, arm, 'kv_use', 'max'))} of the "
        "KV pool was used",
        settings={key_of_size(arm): larger},
        remedy=f"by the cost model {number(gain)} times the output tokens/s ({number(model.rate(size))} to "
        f"{number(model.rate(larger))}{short}), at {duration(model.seconds(larger))} a step",
    )

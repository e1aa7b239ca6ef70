"""What broke a promise, as a person reads it: the sentence, the step, the trace as a table, and the engine's settings.

It also makes of a trial what `replay run` needs to replay it.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from replay.clock import NANOSECONDS
from replay.contract.cases import COST, THINK_TIME, Case
from replay.contract.suite import Breach
from replay.contract.trials import Trial
from replay.scheduler import Limits


def told(breach: Breach) -> list[str]:
    """The lines that tell of a breach."""
    step = f"At step {breach.fault.step}: " if breach.fault.step else ""
    return [f"{step}{breach.fault}.", *trace_table(breach.trial.case), *setting(breach.trial)]


def trace_table(case: Case) -> list[str]:
    """The requests, a row each. Columns in which all are as plain as can be are left out."""
    columns: dict[str, list[Any]] = {
        "row": list(range(len(case.arrivals))),
        "arrival s": [f"{arrival:g}" for arrival in case.arrivals],
        "prompt": case.prompts,
        "output": case.outputs,
        "max_tokens": case.declared,
        "user": case.users,
        "priority": case.priorities,
        "session": case.sessions,
        "deadline s": case.deadlines,
        "tokens alike": case.alike,
    }
    told = ("row", "arrival s", "prompt", "output")
    shown = {name: values for name, values in columns.items() if name in told or any(values)}
    if case.declared == case.outputs:
        del shown["max_tokens"]
    cells = {name: ["-" if value is None else str(value) for value in values] for name, values in shown.items()}
    widths = {name: max(len(name), *map(len, values)) for name, values in cells.items()}
    rows = [tuple(cells), *zip(*cells.values(), strict=True)]
    return ["  " + "  ".join(map(str.rjust, row, widths.values())) for row in rows]


def setting(trial: Trial) -> list[str]:
    """Pool, mode, engine and limits, in a line or two."""
    case, engine, limits = trial.case, trial.engine, trial.case.limits
    mode = ", ".join(f"{name} = {value}" for name, value in trial.mode[1].items())
    parts = [f"{case.blocks} KV blocks of {case.block_size}", f"mode {trial.mode[0]} ({mode})"]
    parts += ["prefix cache"] * engine.prefix_cache + ["overlapping steps"] * engine.overlap
    parts += [f"{engine.host_blocks} blocks of host memory"] * bool(engine.host_blocks)
    parts += [f"lengths as {trial.predictor} knows them"] * (trial.predictor != "oracle")
    if limits != Limits():
        parts += [f"at most {limits.max_waiting} wait"] * (limits.max_waiting < Limits().max_waiting)
        parts += [f"queue time-out {limits.queue_timeout:g} s"] if limits.queue_timeout is not None else []
        parts += [f"time-out {limits.timeout:g} s"] if limits.timeout is not None else []
    return [f"  with {'; '.join(parts)}"]


def trace_frame(case: Case) -> pl.DataFrame:
    """The requests in the columns of a trace."""
    ids = case.ids()
    return pl.DataFrame(
        {
            "arrival": [round(arrival * NANOSECONDS) for arrival in case.arrivals],
            "prompt_tokens": case.prompts,
            "output_tokens": case.outputs,
            "request_id": [str(row) for row in range(len(case.arrivals))],
            "user": case.users,
            "session": case.sessions,
            "think_time_ms": [None if session is None else THINK_TIME * 1000 for session in case.sessions],
            "priority": case.priorities,
            "deadline_ms": [None if deadline is None else deadline * 1000 for deadline in case.deadlines],
            "max_tokens": case.declared,
            "prompt_token_ids": [ids[row] for row in range(len(case.arrivals))],
        },
        schema_overrides={"arrival": pl.Duration("ns"), "user": pl.String, "session": pl.String},
    )


def settings(trial: Trial) -> list[str]:
    """The options of `replay run` that replay a trial's trace as it was; host memory and overlap are not among them."""
    case, limits = trial.case, trial.case.limits
    cost = ", ".join(
        f"{name}_ms = {value * 1000:g}"
        for name, value in (
            ("fixed", COST.fixed), ("prefill", COST.prefill), ("decode", COST.decode), ("context", COST.context)
        )
    )  # fmt: skip
    values: dict[str, Any] = {
        "engine.kind": "simulated",
        "engine.kv_blocks": case.blocks,
        "engine.block_size": case.block_size,
        "engine.cost": f"{{ {cost} }}",
        **{f"modes.{trial.mode[0]}.{name}": value for name, value in trial.mode[1].items()},
    }
    if trial.predictor != "oracle":
        values["lengths.predictor"] = trial.predictor
    if trial.engine.prefix_cache:
        values["engine.prefix_cache"] = "true"
    if limits.max_waiting < Limits().max_waiting:
        values["engine.max_waiting"] = limits.max_waiting
    if limits.queue_timeout is not None:
        values["engine.queue_timeout_s"] = limits.queue_timeout
    if limits.timeout is not None:
        values["engine.timeout_s"] = limits.timeout
    return ["--mode", trial.mode[0], *(part for name, value in values.items() for part in ("--set", f"{name}={value}"))]

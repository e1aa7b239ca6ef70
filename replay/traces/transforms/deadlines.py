"""Deadlines: how long after it is due a request may take to its first token, by its class and its prompt's length."""

from __future__ import annotations

from typing import Any

import polars as pl

from replay.errors import ExperimentError
from replay.traces.durations import nanoseconds
from replay.traces.table import Trace
from replay.traces.transforms.arguments import as_number, entries, settings
from replay.traces.transforms.declaring import Transform, noted, transforms
from replay.traces.transforms.lookup import looked_up, refuse_absent
from replay.traces.transforms.priorities import priority
from replay.traces.wording import counted

EXAMPLE = "{ ttft_ms = 500, per_prompt_token_ms = 0.2 }"
CLASSES = {"slos": "slo", "users": "user", "priorities": "priority"}


@transforms.register("deadline")
def deadline(argument: object) -> Transform:
    """Time to first token allowed, for all or by class, and by prompt token: { deadline = { ttft_ms = 500 } }"""
    if isinstance(argument, str):
        argument = {"ttft_ms": nanoseconds(argument, "deadline") / 1_000_000}
    if as_number(argument) is not None:
        raise ExperimentError(f'deadline: {argument!r} has no unit; write "500ms", or {EXAMPLE}')
    given = settings("deadline", argument, ("ttft_ms", "per_prompt_token_ms", *CLASSES), EXAMPLE)
    classes = [key for key in CLASSES if key in given]
    if len(classes) > 1:
        raise ExperimentError(f"deadline: give one of {' and '.join(classes)}, not both")
    if "ttft_ms" not in given and not classes:
        raise ExperimentError(f"deadline: there is no ttft_ms, nor {', '.join(CLASSES)}; write for instance {EXAMPLE}")
    each = as_number(given.get("per_prompt_token_ms", 0))
    if each is None or each < 0:
        found = given["per_prompt_token_ms"]
        raise ExperimentError(f"deadline: per_prompt_token_ms: {found!r} is not a number of at least 0")
    base = pl.lit(milliseconds("deadline: ttft_ms", given["ttft_ms"]) if "ttft_ms" in given else None, pl.Float64)
    tokens = each * pl.col("prompt_tokens")
    return by_class(given, classes[0], base, tokens) if classes else lambda trace: with_deadlines(trace, base + tokens)


def by_class(given: dict[str, Any], kind: str, base: pl.Expr, tokens: pl.Expr) -> Transform:
    """Instead of `base` what is given for a class, a user or a priority, and what comes for the prompt's tokens."""
    place, column = f"deadline: {kind}", CLASSES[kind]
    table = entries(place, given[kind], "{ interactive = 500, batch = 30_000 }")
    times = {name: milliseconds(f"{place}.{name}", value) for name, value in table.items()}
    named = {priority(place, name) if column == "priority" else name: value for name, value in times.items()}
    value = pl.coalesce(looked_up(pl.col(column), named, pl.Float64()), base) + tokens

    def derive(trace: Trace) -> Trace:
        if column != "priority":
            refuse_absent(trace, column, list(times), place)
        return with_deadlines(trace, value)

    return derive


def with_deadlines(trace: Trace, value: pl.Expr) -> Trace:
    """The trace with these deadlines, and a note on what they are."""
    own = pl.col("deadline_ms")
    replaced = trace.values(own=own.is_not_null().sum())["own"]
    changed = trace.with_rows(trace.rows.with_columns(value.alias("deadline_ms")))
    found = changed.values(least=own.min(), most=own.max(), none=own.is_null().sum())
    least, most = found["least"], found["most"]
    told = "no request has a deadline" if least is None else f"deadlines of {least:,.6g} ms"
    notes = [told if least == most else f"{told} to {most:,.6g} ms"]
    if found["none"] and least is not None:
        notes.append(f"{counted(found['none'], 'request')} without one")
    if replaced:
        notes.append(f"{counted(replaced, 'request')} had a deadline, which is replaced")
    return noted(changed, *notes)


def milliseconds(place: str, value: object) -> float:
    """A time above 0."""
    number = as_number(value)
    if number is None or number <= 0:
        raise ExperimentError(f"{place}: {value!r} is not a number of milliseconds above 0")
    return number

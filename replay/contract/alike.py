"""Whether two replays are the same, wholly or up to an instant; and where they part, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from replay.contract.expect import broken
from replay.contract.simulation import Replayed

TIMES = {
    "requests": ["arrival", "due", "submitted", "admitted", "first_token", "last_token", "finished", "ended"],
    "steps": ["start", "launched", "end"],
    "spans": ["start", "end"],
}


def alike(one: Replayed, other: Replayed, sentence: str, without: Sequence[str] = ()) -> None:
    """Raise Broken where two replays differ, but for the columns `without`: the first step if any does, else a row."""
    _steps_alike(one.steps, other.steps, sentence)
    first, second = (replayed.requests.sort("row").drop(without) for replayed in (one, other))
    _rows_alike(first, second, sentence)
    first, second = (replayed.spans.sort("row", "start") for replayed in (one, other))
    _rows_alike(first, second, f"{sentence}, as far as slots go")


def alike_before(instant: float, one: Replayed, other: Replayed, sentence: str, *, inclusive: bool = True) -> None:
    """Raise Broken where two replays differ before `instant`: in a step, or in the instants of tokens."""
    ended = pl.col("end") <= instant if inclusive else pl.col("end") < instant
    _steps_alike(one.steps.filter(ended), other.steps.filter(ended), sentence)
    for request, known in zip(one.objects, other.objects, strict=False):
        times, others = (
            [at for at in each.token_times if at < instant or (inclusive and at == instant)]
            for each in (request, known)
        )
        if times != others:
            broken(
                f"{sentence}: the tokens of row {request.row} come at {_seconds(times)}, and at {_seconds(others)} s"
            )


def shifted_back(replayed: Replayed, seconds: float) -> Replayed:
    """The replay with every instant earlier by `seconds`."""
    tables = {}
    for name, columns in TIMES.items():
        earlier = [(pl.col(column) - seconds).round(9) for column in columns]
        if name == "requests":
            earlier.append(pl.col("token_times").list.eval((pl.element() - seconds).round(9)))
        tables[name] = getattr(replayed, name).with_columns(earlier)
    return replace(replayed, **tables)


def _steps_alike(one: pl.DataFrame, other: pl.DataFrame, sentence: str) -> None:
    if one.equals(other):
        return
    for step, another in zip(one.iter_rows(named=True), other.iter_rows(named=True), strict=False):
        if step != another:
            broken(f"{sentence}: {_difference(step, another)}", f"{step['step']}, at {step['start']:g} s")
    last = min(one.height, other.height)
    broken(f"{sentence}: one ends after {one.height} steps, and the other after {other.height}", str(last))


def _rows_alike(one: pl.DataFrame, other: pl.DataFrame, sentence: str) -> None:
    if one.equals(other):
        return
    for row, another in zip(one.iter_rows(named=True), other.iter_rows(named=True), strict=False):
        if row != another:
            broken(f"{sentence}: of row {row['row']}, {_difference(row, another)}")
    broken(f"{sentence}: one has {one.height} rows, and the other {other.height}")


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """`scheduled` is 2, and 1."""
    name = next(name for name in one if one[name] != other[name])
    return f"`{name}` is {one[name]}, and {other[name]}"


def _seconds(times: Sequence[float]) -> str:
    return ", ".join(f"{at:g}" for at in times) or "no time"

"""What a trace says of its sessions: how many, whether turns are left out, what they think, and how soon all is due.

It knows no engine: how long answers take, and which turn fails, is known when the trace is replayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from replay.clock import NANOSECONDS
from replay.traces.table import Trace
from replay.traces.turns import FOLLOWS, turns
from replay.traces.wording import counted

MILLISECOND = NANOSECONDS // 1_000


@dataclass(frozen=True, slots=True)
class Sessions:
    """`sessions` in all, with so many `requests`. `with_gaps` counts those in which the number of a turn lies more
    than one above that of the turn before it: such a session goes on without what is not there. `at_once` counts the
    turns that arrive at the same instant as the turn before."""

    sessions: int
    requests: int
    with_gaps: int
    at_once: int

    def sentence(self, *, open_loop: bool) -> str:
        """`12 sessions with 40 requests, in a closed loop`."""
        told = f"{counted(self.sessions, 'session')} with {counted(self.requests, 'request')}, in "
        told += "an open loop: no turn waits for the one before" if open_loop else "a closed loop"
        if open_loop and self.at_once:
            told += f", and {counted(self.at_once, 'turn')} will come at the same instant as the one before"
        if self.with_gaps:
            told += f"; {self.with_gaps:,} of the sessions lack numbers among their turns, and go on without those"
        return told


def sessions_of(trace: Trace) -> Sessions | None:
    """The trace's sessions; None where it has none."""
    found = [each.select(pl.len(), pl.col("requests", "gap", "at_once").sum()) for each in map(_each, _turns(trace))]
    return Sessions(*pl.concat(found).sum().row(0)) if found else None


def last_due(trace: Trace, *, open_loop: bool) -> float:
    """Seconds from the first arrival to the earliest instant at which the last request can be due.

    In a closed loop, a turn comes no sooner than all think times since any earlier turn of its session after the
    arrival of that one, even if answers took no time.
    """
    parts = () if open_loop else _turns(trace)
    return max([trace.span_nanoseconds, *(_last(_each(part)) for part in parts)]) / NANOSECONDS


def describe_sessions(trace: Trace) -> dict[str, Any] | None:
    """How many sessions, of how many requests, what they think, and how long a closed loop takes if answers took no
    time: `most_open` of them are then between their first turn and their last at once. None where it has none.

    A later turn without a think time has 0.
    """
    each, thought = [], []
    for part in _turns(trace):
        each.append(_each(part))
        thought.append(part.filter(FOLLOWS)["think_time_ms"])
    if not each:
        return None
    sessions, think = pl.concat(each), pl.concat(thought)
    return {
        "sessions": sessions.height,
        "requests": sessions["requests"].sum(),
        "mean": sessions["requests"].mean(),
        "max": sessions["requests"].max(),
        "most_open": _most_open(sessions),
        "with_gaps": sessions["gap"].sum(),
        "later_turns": len(think),
        "later_turns_without_think_time": think.null_count(),
        "think_time_s": None if think.null_count() == len(think) else _quantiles(think.drop_nulls() / 1_000),
        "last_due_s": max(_last(sessions), trace.span_nanoseconds) / NANOSECONDS,
    }


def _turns(trace: Trace) -> Iterator[pl.DataFrame]:
    """The turns of sessions with what they think."""
    return turns(trace.rows, "think_time_ms")


def _each(turns: pl.DataFrame) -> pl.DataFrame:
    """A row for each session: its turns, its `first` arrival, and when its last turn is `due` if answers take no time.

    `due` is the running maximum of the arrivals, each less all that was thought up to it, and then that added again.
    """
    turn, arrival = pl.col("turn"), pl.col("arrival")
    thought = (pl.col("think_time_ms").fill_null(0) * MILLISECOND).round().cast(pl.Int64)
    return (
        turns.with_columns(
            gap=FOLLOWS & (turn - turn.shift() > 1),
            at_once=FOLLOWS & (arrival == arrival.shift()),
            thought=thought.cum_sum(),  # differences within a session count
        )
        .group_by("session")
        .agg(
            pl.len().alias("requests"),
            pl.col("gap").any(),
            pl.col("at_once").sum(),
            arrival.min().alias("first"),
            due=pl.col("thought").last() + (arrival - pl.col("thought")).max(),
        )
    )


def _last(sessions: pl.DataFrame) -> int:
    """When the last of these is due, in nanoseconds."""
    last: int = sessions.select(pl.col("due").max()).item()
    return last


def _most_open(sessions: pl.DataFrame) -> int:
    """The most sessions that are open at one instant; one that ends then is open still."""
    comes = sessions.select(pl.col("first").alias("at"), change=1)
    goes = sessions.select(pl.col("due").alias("at") + 1, change=-1)
    changes = pl.concat([comes, goes]).group_by("at").agg(pl.col("change").sum()).sort("at")
    most: int = changes.select(pl.col("change").cum_sum().max()).item()
    return most


def _quantiles(values: pl.Series) -> dict[str, float | None]:
    """Percentiles, linear-interpolated, and the largest."""
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: values.quantile(share, "linear") for name, share in shares.items()}

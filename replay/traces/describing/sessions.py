"""What a trace says of its sessions: how many there are, whether turns are left out, and how soon the last can be due.

It knows no engine: how long answers take, and which turn fails, is known when the trace is replayed.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from replay.clock import NANOSECONDS
from replay.traces.table import Trace
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
    follows = pl.col("session") == pl.col("session").shift()
    found = (
        _turns(trace)
        .sort("session", "turn", maintain_order=True)
        .with_columns(
            gap=follows & (pl.col("turn") - pl.col("turn").shift() > 1),
            at_once=follows & (pl.col("arrival") == pl.col("arrival").shift()),
        )
        .group_by("session")
        .agg(pl.len(), pl.col("gap").any(), pl.col("at_once").sum())
        .select(pl.len().alias("sessions"), pl.col("len", "gap", "at_once").sum())
        .collect()
    )
    return Sessions(*found.row(0)) if found.item(0, "sessions") else None


def last_due(trace: Trace, *, open_loop: bool) -> float:
    """Seconds from the first arrival to the earliest instant at which the last request can be due.

    In a closed loop, a turn comes no sooner than all think times since any earlier turn of its session after the
    arrival of that one, even if answers took no time.
    """
    last = trace.span_nanoseconds
    if not open_loop:
        thought = (pl.col("think_time_ms").fill_null(0) * MILLISECOND).cum_sum()  # differences within a session count
        waited = pl.col("arrival") - pl.col("thought")
        due = pl.col("thought") + waited.cum_max().over("session")
        turns = _turns(trace).sort("session", "turn", maintain_order=True).with_columns(thought.alias("thought"))
        last = max(last, turns.select(due.max()).collect().item() or 0)
    return last / NANOSECONDS


def _turns(trace: Trace) -> pl.LazyFrame:
    """The requests that belong to a session."""
    rows = trace.rows.select("session", "turn", "arrival", "think_time_ms")
    return rows.filter(pl.col("session").is_not_null())

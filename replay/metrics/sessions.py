"""Sessions as a whole: conversations and programs, whose next request comes when the one before is answered."""

from __future__ import annotations

import polars as pl

from replay.metrics.metric import metric
from replay.metrics.statistics import finite

FIRST = pl.col("session").is_not_null() & pl.col("session").is_first_distinct()
WHOLE = (pl.col("status") == "completed").all().over("session")


@metric("sessions_completed", unit="share", shape="one", better="higher", count=FIRST.sum(), grouped=False)
def sessions_completed() -> pl.Expr:
    """sessions whose turns were all completed / all sessions; not defined without sessions"""
    return finite((FIRST & WHOLE).sum() / FIRST.sum())


@metric("session_time", unit="s", better="lower")
def session_time() -> pl.Expr:
    """for each session whose turns were all completed, its last answer - its first turn was due, the times between
    turns included; told once, with its first turn"""
    seconds = pl.col("finished").max().over("session") - pl.col("due").min().over("session")
    return pl.when(FIRST & WHOLE).then(seconds.round(9))


@metric("session_latency", unit="s/token", better="lower")
def session_latency() -> pl.Expr:
    """session_time / tokens of all answers of the session"""
    return finite(session_time() / pl.col("generated_tokens").sum().over("session"))

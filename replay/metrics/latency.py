"""What one request felt: each metric a value (or a list of gaps) for every request.

All count from `due`, when the trace intended the request, and are null where their moment never came. A failed request
has no latencies: its tokens are no part of what a success is like. The clock holds whole nanoseconds, so differences
are rounded to them.
"""

from __future__ import annotations

import polars as pl

from replay.metrics.metric import metric
from replay.metrics.statistics import finite

NOT_FAILED = pl.col("status") != "failed"


def between(start: str, end: str) -> pl.Expr:
    """Seconds from one stamp to another; null where either is, or where the request failed."""
    return pl.when(NOT_FAILED).then((pl.col(end) - pl.col(start)).round(9))


@metric("ttft", unit="s", better="lower")
def ttft() -> pl.Expr:
    """first token - due; null if there was none"""
    return between("due", "first_token")


@metric("ttft_delivered", unit="s", better="lower")
def ttft_delivered() -> pl.Expr:
    """finished - due where a mode delivers a batch's answers together (the client sees nothing sooner), else ttft"""
    return pl.when(pl.col("padded")).then(between("due", "finished")).otherwise(ttft())


@metric("queue_wait", unit="s", better="lower")
def queue_wait() -> pl.Expr:
    """first admission - due"""
    return between("due", "admitted")


@metric("tpot", unit="s", better="lower")
def tpot() -> pl.Expr:
    """(last token - first token) / (tokens - 1), for each request; null if it has fewer than 2 tokens"""
    gaps = pl.col("generated_tokens") - 1
    return pl.when(gaps >= 1).then(between("first_token", "last_token") / gaps)


@metric("itl", unit="s", better="lower", shape="pooled")
def itl() -> pl.Expr:
    """gaps between consecutive tokens, pooled over requests"""
    gaps = pl.col("token_times").list.diff(null_behavior="drop").list.eval(pl.element().round(9))
    return pl.when(NOT_FAILED).then(gaps)


@metric("max_gap", unit="s", better="lower")
def max_gap() -> pl.Expr:
    """the longest of a request's gaps between tokens: its worst stall"""
    return itl().list.max()


@metric("e2e", unit="s", better="lower")
def e2e() -> pl.Expr:
    """finished - due, where finished is when the answer was delivered"""
    return between("due", "finished")


@metric("normalized_latency", unit="s/token", better="lower")
def normalized_latency() -> pl.Expr:
    """e2e / tokens of the answer"""
    return finite(e2e() / pl.col("generated_tokens"))


@metric("slowdown", unit="x", better="lower")
def slowdown() -> pl.Expr:
    """e2e / the time that the same request takes alone on the same engine"""
    return finite(e2e() / pl.col("alone"))


@metric("lag", unit="s", better="lower")
def lag() -> pl.Expr:
    """how much later than the trace intended the engine was told of a request; not part of any wait for a turn"""
    return pl.col("lag")

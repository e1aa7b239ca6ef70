"""Deadlines of the requests' own: who got its first token in time. Goals that all share are told by goodput."""

from __future__ import annotations

import polars as pl

from replay.metrics.latency import ttft_delivered
from replay.metrics.metric import metric

ASKED = pl.col("deadline").is_not_null()


@metric("deadline_met", unit="share", shape="one", better="higher", count=ASKED.sum())
def deadline_met() -> pl.Expr:
    """requests whose first token came within their own deadline (`<=`; by ttft_delivered, as the client sees it) / all
    requests that have one; who got no token missed it"""
    return (ttft_delivered() <= pl.col("deadline")).fill_null(value=False).filter(ASKED).mean()

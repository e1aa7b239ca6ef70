"""What was served, how fast, and how much of it was good: aggregates over requests.

Only tokens of completed requests count, and padding never. Rates are over the whole run, from the first due moment to
the last event; over a steady window between two *arrival* times, the same for all cells of a trace; and over the drain
that follows the last arrival.
"""

from __future__ import annotations

from typing import get_args

import polars as pl

from replay.metrics.latency import e2e, tpot, ttft_delivered
from replay.metrics.metric import metric
from replay.metrics.statistics import finite
from replay.request import Status

STATUSES: tuple[str, ...] = get_args(Status)
COMPLETED = pl.col("status") == "completed"


def _constant(column: str) -> pl.Expr:
    return pl.col(column).first()


def _rate(amount: pl.Expr, start: str, end: str) -> pl.Expr:
    return finite(amount.filter(COMPLETED).sum() / (_constant(end) - _constant(start)))


@metric("requests", unit="requests", shape="one")
def requests() -> pl.Expr:
    """rows of the trace as replayed: the counts by status add up to it"""
    return pl.len()


def _count(status: str) -> pl.Expr:
    return (pl.col("status") == status).sum()


MEANINGS = {
    "completed": "requests that got their whole answer",
    "rejected": "requests turned away: a full queue, or no room for them even in an empty pool",
    "timed_out": "requests that waited or ran longer than allowed",
    "cancelled": "requests that were withdrawn",
    "failed": "requests that ended in an error",
    "skipped": "requests that were not sent, because an earlier turn of their session did not complete",
    "unfinished": "requests that had not ended when the cell was stopped",
}
for _status in STATUSES:

    def _counted(status: str = _status) -> pl.Expr:
        return _count(status)

    _counted.__doc__ = MEANINGS[_status]
    metric(_status, unit="requests", shape="one", better="higher" if _status == "completed" else "lower")(_counted)


@metric("output_throughput", unit="tokens/s", shape="one", better="higher", count=COMPLETED.sum())
def output_throughput() -> pl.Expr:
    """tokens of completed answers / seconds of the whole run, from the first due to the last event"""
    return _rate(pl.col("generated_tokens"), "cell_start", "cell_end")


@metric("prompt_throughput", unit="tokens/s", shape="one", better="higher", count=COMPLETED.sum())
def prompt_throughput() -> pl.Expr:
    """prompt tokens of completed requests / seconds of the whole run; padding and tokens computed again do not count"""
    return _rate(pl.col("prompt_tokens"), "cell_start", "cell_end")


@metric("output_throughput_steady", unit="tokens/s", shape="one", better="higher", count=COMPLETED.sum())
def output_throughput_steady() -> pl.Expr:
    """tokens of completed answers computed between a tenth of the arrival span and the last arrival / those seconds;
    not defined for a run that ended before the last arrival"""
    return _rate(pl.col("tokens_steady"), "steady_start", "steady_end")


@metric("prompt_throughput_steady", unit="tokens/s", shape="one", better="higher", count=COMPLETED.sum())
def prompt_throughput_steady() -> pl.Expr:
    """prompt tokens of completed requests whose first token came in the steady window / its seconds"""
    inside = pl.col("first_token").is_between("steady_start", "steady_end")
    return _rate(pl.when(inside).then(pl.col("prompt_tokens")), "steady_start", "steady_end")


@metric("output_throughput_drain", unit="tokens/s", shape="one", count=COMPLETED.sum())
def output_throughput_drain() -> pl.Expr:
    """tokens of completed answers computed after the last arrival / seconds of that tail; not defined for a run that
    ended before"""
    return _rate(pl.col("tokens_drain"), "steady_end", "cell_end")


@metric("drain_time", unit="s", shape="one", better="lower", grouped=False)
def drain_time() -> pl.Expr:
    """the last event of the run - the last arrival; not defined for a run that ended before"""
    return (_constant("cell_end") - _constant("steady_end")).round(9)


def good() -> pl.Expr:
    """Whether a request completed and met every goal (`<=`); null where no goals were set."""

    def met(value: pl.Expr, goal: str) -> pl.Expr:
        return (value <= pl.col(goal)).fill_null(value=True)

    # by what the client sees: where answers are delivered together, it sees no token sooner
    kept = COMPLETED & met(ttft_delivered(), "goal_ttft") & met(tpot(), "goal_tpot") & met(e2e(), "goal_e2e")
    asked = pl.any_horizontal(pl.col("goal_ttft", "goal_tpot", "goal_e2e").is_not_null())
    return pl.when(asked).then(kept)


@metric("goodput", unit="share", shape="one", better="higher")
def goodput() -> pl.Expr:
    """requests that completed and met every goal (`<=`; TTFT by ttft_delivered, as the client sees it) / all requests;
    whatever did not complete counts as bad, and a goal for tpot is met by an answer of one token"""
    return good().mean()


@metric("goodput_rate", unit="requests/s", shape="one", better="higher")
def goodput_rate() -> pl.Expr:
    """requests that completed and met every goal / seconds of the whole run"""
    met = pl.when(good().count() > 0).then(good().sum())
    return finite(met / (_constant("cell_end") - _constant("cell_start")))


@metric("recomputed_tokens", unit="tokens", shape="one", better="lower")
def recomputed_tokens() -> pl.Expr:
    """tokens that were computed again after an eviction"""
    return pl.col("recomputed_tokens").sum()

"""What the engine did with its time: metrics over steps, and over the spans for which requests held batch slots."""

from __future__ import annotations

import polars as pl

from replay.metrics.metric import metric
from replay.metrics.statistics import finite

OWN_TOKENS = pl.col("prefill_tokens") + pl.col("decodes")
BOUNDS = ("gate", "slots", "blocks", "budget", "policy", "nothing")
"""What may have refused a request in a step, the first of them; `policy`: a rule of the policy's own held it back."""


@metric("batch_size", unit="requests", table="steps")
def batch_size() -> pl.Expr:
    """for each step, the requests that computed tokens of their own"""
    return pl.col("scheduled")


@metric("size_in_force", unit="slots", table="steps", shape="one")
def size_in_force() -> pl.Expr:
    """seconds of steps * the batch size in force in each / seconds of all steps, each from when arrivals were taken in:
    what a batch size that adapts was, on average"""
    seconds = pl.col("end") - pl.col("start")
    return finite((seconds * pl.col("slots")).sum() / seconds.sum())


@metric("resident", unit="requests", table="steps")
def resident() -> pl.Expr:
    """for each step, the requests that held a batch slot, paused and finished ones included"""
    return pl.col("running")


@metric("waiting", unit="requests", table="steps", better="lower")
def waiting() -> pl.Expr:
    """for each step, the requests still waiting after the policy had decided"""
    return pl.col("waiting")


@metric("tokens_per_step", unit="tokens", table="steps")
def tokens_per_step() -> pl.Expr:
    """for each step, prompt tokens + one for each decoding request, without padding"""
    return OWN_TOKENS


@metric("step_time", unit="s", table="steps")
def step_time() -> pl.Expr:
    """for each step, its tokens are back - the batch was handed over"""
    return (pl.col("end") - pl.col("launched")).round(9)


@metric("scheduler_time", unit="s", table="steps", better="lower")
def scheduler_time() -> pl.Expr:
    """for each step, the batch was handed over - arrivals were taken in: what deciding cost, be it while the step
    before was computed"""
    return pl.col("planning").round(9)


@metric("pace", unit="ratio", table="steps", shape="one", better="lower")
def pace() -> pl.Expr:
    """seconds that the steps took (step_time) / seconds that the engine's cost model gives them: over 1, the machine
    was slower; padding costs what its step computes, as prompt in one with prompts and else as decodes"""
    return finite((pl.col("end") - pl.col("launched")).sum() / pl.col("expected").sum())


@metric("kv_use", unit="share", table="steps")
def kv_use() -> pl.Expr:
    """for each step, used blocks / blocks of the pool"""
    return finite(pl.col("used_blocks") / pl.col("blocks"))


@metric("padding_share", unit="share", table="steps", shape="one", better="lower")
def padding_share() -> pl.Expr:
    """padding tokens / all tokens computed, padding included"""
    padding = pl.col("padding_tokens").sum()
    return finite(padding / (padding + OWN_TOKENS.sum()))


@metric("evictions", unit="evictions", table="steps", shape="one", better="lower")
def evictions() -> pl.Expr:
    """times that a running request lost its blocks, those swapped out included"""
    return pl.col("evicted").sum()


@metric("left_waiting", unit="share", table="steps", shape="one", count=(pl.col("admitted") > 0).sum())
def left_waiting() -> pl.Expr:
    """steps that admitted some requests and left others waiting / steps that admitted any: how often there was a
    choice"""
    return (pl.col("waiting") > 0).filter(pl.col("admitted") > 0).mean()


def _is_bound(bound: str) -> pl.Expr:
    return pl.col("bound").fill_null("nothing") == bound


for _bound in BOUNDS:

    def _bound_time(bound: str = _bound) -> pl.Expr:
        seconds = pl.col("end") - pl.col("start")
        return finite(seconds.filter(_is_bound(bound)).sum() / seconds.sum())

    def _bound_steps(bound: str = _bound) -> pl.Expr:
        return _is_bound(bound).mean()

    _what = {
        "nothing": "in which nothing was refused",
        "policy": "in which a rule of the policy's own was the first to hold a request back",
    }.get(_bound, f"in which the {_bound} refused a request, before anything else did")
    _bound_time.__doc__ = f"seconds of steps {_what} / seconds of all steps, each from when arrivals were taken in"
    _bound_steps.__doc__ = f"steps {_what} / all steps"
    metric(f"bound_by_{_bound}", unit="share", table="steps", shape="one")(_bound_time)
    metric(f"steps_bound_by_{_bound}", unit="share", table="steps", shape="one")(_bound_steps)


HELD = pl.col("end") - pl.col("start")
OWN_SHARE = pl.col("tokens") / (pl.col("tokens") + pl.col("padding_tokens"))
OWN_SECONDS = (
    pl.when(pl.col("kind").is_in(["prefill", "decode"])).then(HELD * finite(OWN_SHARE).fill_null(1.0)).otherwise(0.0)
)
PAUSED_SECONDS = pl.when(pl.col("kind") == "paused").then(HELD).otherwise(0.0)
"""Slot time of a span: the part that went into tokens of its own, and the part in which it got none by choice."""


def _slot_share(seconds: pl.Expr) -> pl.Expr:
    slot_time = pl.col("slots").first() * (pl.col("cell_end").first() - pl.col("cell_start").first())
    return finite(seconds.sum() / slot_time)


@metric("slot_useful", unit="share", table="spans", shape="one", better="higher")
def slot_useful() -> pl.Expr:
    """slot time that went into tokens of prompts and answers / slots * seconds of the run; the slots are those of the
    largest batch size there can be; of a prompt padded to the longest, its tokens' share of the time"""
    return _slot_share(OWN_SECONDS)


@metric("slot_padded", unit="share", table="spans", shape="one", better="lower")
def slot_padded() -> pl.Expr:
    """slot time that went into padding / slots * seconds of the run"""
    return _slot_share(HELD - OWN_SECONDS - PAUSED_SECONDS)


@metric("slot_paused", unit="share", table="spans", shape="one", better="lower")
def slot_paused() -> pl.Expr:
    """slot time of resident requests that got no tokens / slots * seconds of the run"""
    return _slot_share(PAUSED_SECONDS)


@metric("slot_idle", unit="share", table="spans", shape="one", better="lower")
def slot_idle() -> pl.Expr:
    """slot time that nobody held / slots * seconds of the run"""
    return finite(1 - _slot_share(HELD))

"""What a prefix cache saved, and what was swapped instead of computed again: metrics over requests and steps."""

from __future__ import annotations

import polars as pl

from replay.metrics.metric import metric
from replay.metrics.statistics import finite

LOOKED_UP = pl.col("cached_tokens").is_not_null()
"""Requests that were admitted where there is a prefix cache."""


@metric("cache_hit_rate", unit="share", shape="one", better="higher", count=LOOKED_UP.sum())
def cache_hit_rate() -> pl.Expr:
    """prompt tokens found in the prefix cache at a request's first admission / prompt tokens of the requests admitted;
    not defined without a prefix cache"""
    return finite(pl.col("cached_tokens").sum() / pl.col("prompt_tokens").filter(LOOKED_UP).sum())


@metric("cached_tokens", unit="tokens", shape="one", better="higher", count=LOOKED_UP.sum())
def cached_tokens() -> pl.Expr:
    """prompt tokens found in the prefix cache at a request's first admission, so that nobody computed them for it;
    not defined without a prefix cache"""
    return pl.when(LOOKED_UP.any()).then(pl.col("cached_tokens").sum())


@metric("swaps", unit="evictions", shape="one", better="lower")
def swaps() -> pl.Expr:
    """evictions that left a request's tokens in host memory, to be copied back"""
    return pl.col("swaps").sum()


@metric("swapped_blocks", unit="blocks", table="steps", shape="one", better="lower")
def swapped_blocks() -> pl.Expr:
    """KV blocks copied to host memory or back"""
    return (pl.col("swapped_out") + pl.col("swapped_in")).sum()

"""Who was starved, and who was passed over by the less urgent: waits within a request's life, to the instant."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.metrics.metric import metric
from replay.metrics.residence import Times, holds, waits

LEFT = pl.coalesce("ended", "cell_end")
RESIDENCE = ("due", "admitted", "ended", "cell_end", "status", "urgency", "held_from", "held_to", "put_out")


@metric("starvation_age", unit="s", better="lower")
def starvation_age() -> pl.Expr:
    """for each request, the longest time without a token: from due, or from its last token, to its next or, without its
    whole answer, to when it ended or the cell did; not defined for skipped ones"""
    first = (pl.coalesce("first_token", LEFT) - pl.col("due")).round(9)
    between = pl.col("token_times").list.diff(null_behavior="drop").list.max().round(9)
    after = pl.when(pl.col("status") != "completed").then((LEFT - pl.col("token_times").list.last()).round(9))
    sent = (pl.col("status") != "skipped") & (pl.col("due") <= LEFT)
    return pl.when(sent).then(pl.max_horizontal(first, between, after))


@metric("inversion_time", unit="s", better="lower")
def inversion_time() -> pl.Expr:
    """for each request, the time that it waited (after an eviction too) while a strictly less urgent one held a slot;
    not defined for the least urgent ones, nor where all are equally urgent"""
    return pl.struct(RESIDENCE).map_batches(
        lambda rows: pl.Series(inversions(rows.struct.unnest()), dtype=pl.Float64, nan_to_null=True),
        return_dtype=pl.Float64,
    )


def inversions(requests: pl.DataFrame) -> NDArray[np.float64]:
    """Seconds of each request; NaN where not defined."""
    urgency = requests["urgency"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    never = requests.select((pl.col("status") == "skipped") | ~(pl.col("due") <= LEFT).fill_null(value=False))
    found = np.full(len(requests), np.nan)
    levels = np.unique(urgency[~np.isnan(urgency)])
    waiting, holding = waits(requests), holds(requests)
    for level in levels[1:]:
        alike = urgency == level
        found[alike] = 0.0
        mine = alike[waiting.requests]
        seconds = _covered(holding, urgency[holding.requests] < level, waiting.starts[mine], waiting.ends[mine])
        np.add.at(found, waiting.requests[mine], seconds)
    found[never.to_series().to_numpy()] = np.nan
    return np.round(found, 9)


def _covered(
    holding: Times, kept: NDArray[np.bool_], starts: NDArray[np.float64], ends: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Of each interval, the seconds in which one of the `kept` intervals of `holding` goes on."""
    if not kept.any():
        return np.zeros(len(starts))
    edges = np.concatenate([holding.starts[kept], holding.ends[kept]])
    change = np.repeat([1, -1], kept.sum())
    order = np.argsort(edges, kind="stable")
    edges, held = edges[order], np.cumsum(change[order]) > 0
    total = np.concatenate([[0.0], np.cumsum(held[:-1] * np.diff(edges))])
    return np.asarray(np.interp(ends, edges, total) - np.interp(starts, edges, total))

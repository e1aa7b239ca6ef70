"""Quality of experience: whether tokens came as fast as they are read.

After J. Liu et al., "Andes: Defining and Enhancing Quality-of-Experience in LLM-Based Text Streaming Services", 2024
(arXiv 2404.16283): the area between the expected and the actual delivery of tokens over time, as a share of the
expected one's. A reader takes a token no sooner than the one before is read, so that what comes early is no gain.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.metrics.metric import metric

COLUMNS = ("status", "due", "finished", "token_times", "padded", "goal_ttft", "goal_reading")


@metric("qoe", unit="index", better="higher")
def qoe() -> pl.Expr:
    """for each request, 1 - S_delay / S_whole: token k is expected at due + goals.ttft_ms + (k - 1) /
    goals.reading_tokens_per_s and is read at the later of its coming (its delivery, where a mode delivers a batch's
    answers together) and one reading time after the token before; S_delay sums how much later than expected each is
    read, S_whole the time from when each is expected to when the last is read; 1 if none is late, 0 for a request that
    ended without its answer, not defined for skipped and unfinished ones; needs both goals"""
    return pl.struct(COLUMNS).map_batches(
        lambda rows: pl.Series(experienced(rows.struct.unnest()), dtype=pl.Float64, nan_to_null=True),
        return_dtype=pl.Float64,
    )


def experienced(requests: pl.DataFrame) -> NDArray[np.float64]:
    """The index of each request; NaN where it is not defined."""
    found = np.full(len(requests), np.nan)
    goals = requests.select(pl.col("goal_ttft", "goal_reading").first()).row(0) if len(requests) else (None, None)
    ttft, reading = goals
    if ttft is None or reading is None:
        return found
    status = requests["status"]
    found[(~status.is_in(["completed", "unfinished", "skipped"])).to_numpy()] = 0.0
    whole = (status == "completed").to_numpy() & (requests["token_times"].list.len().fill_null(0) > 0).to_numpy()
    served = requests.filter(pl.Series(whole))
    if served.is_empty():
        return found
    # Less the reading times before it, a token is read when the latest so far came: then all are due at one instant.
    earlier = pl.int_range(pl.len()) / reading
    times = served.select(
        pl.when(pl.col("padded"))
        .then(pl.col("token_times").list.eval(pl.element() * 0.0))
        .otherwise(pl.col("token_times").list.eval((pl.element() - earlier).cum_max()))
    ).to_series()
    counts = times.list.len().to_numpy().astype(np.int64)
    expected = (served["due"] + ttft).to_numpy()
    delivered = np.where(served["padded"].to_numpy(), served["finished"].to_numpy(), 0.0)
    late = times.explode().to_numpy() + np.repeat(delivered - expected, counts)
    late = np.round(late, 9)
    starts = np.cumsum(counts) - counts
    delayed = np.add.reduceat(np.maximum(late, 0.0), starts)
    last = np.maximum(late[starts + counts - 1], 0.0)
    total = counts * last + counts * (counts - 1) / (2 * reading)
    found[whole] = np.where(delayed > 0, 1 - delayed / np.where(total > 0, total, 1.0), 1.0)
    return found

"""When each request waited and when it held a slot, to the instant: from its spans, or from its stamps without any.

It knows nothing of users, urgency or service.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

LOST = ("evicted", "swapped")
"""How a span ends whose request goes back to wait."""


@dataclass(frozen=True, slots=True)
class Times:
    """Intervals of requests (by their place in the table), from `starts` up to `ends`."""

    requests: NDArray[np.int64]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]


def stays(spans: pl.DataFrame) -> pl.DataFrame:
    """For each row with spans: `held_from`, `held_to` (lists), and whether it was put out of the last for good."""
    number = pl.col("ending").is_in(LOST).cum_sum().over("row") - pl.col("ending").is_in(LOST).cast(pl.UInt32)
    held = (
        spans.sort("row", "start", maintain_order=True)
        .with_columns(stay=number)
        .group_by("row", "stay", maintain_order=True)
        .agg(pl.col("start").first(), pl.col("end").last(), pl.col("ending").last())
    )
    return held.group_by("row", maintain_order=True).agg(
        held_from="start", held_to="end", put_out=pl.col("ending").last().is_in(LOST)
    )


def waits(requests: pl.DataFrame) -> Times:
    """When each request waited: from due to its first slot, after each eviction, or until it left."""
    rows = _placed(requests)
    began = pl.coalesce(pl.col("held_from").list.first(), "admitted", "left")
    first = rows.select("place", start="due", end=began)
    again = rows.filter(pl.col("held_from").is_not_null()).select(
        "place",
        start=pl.col("held_to"),
        end=pl.when(pl.col("put_out"))
        .then(pl.concat_list(pl.col("held_from").list.slice(1), "left"))
        .otherwise(pl.concat_list(pl.col("held_from").list.slice(1), pl.col("held_to").list.last())),
    )
    return _times(pl.concat([first, again.explode("start", "end")]))


def holds(requests: pl.DataFrame) -> Times:
    """When each request held a slot, be it paused, or kept to the end of its batch."""
    rows = _placed(requests)
    spanned = rows.drop_nulls("held_from").select("place", start="held_from", end="held_to").explode("start", "end")
    bare = rows.filter(pl.col("held_from").is_null(), pl.col("admitted").is_not_null())
    return _times(pl.concat([spanned, bare.select("place", start="admitted", end="left")]))


def _placed(requests: pl.DataFrame) -> pl.DataFrame:
    """With the place of each, and when it left; without those that were never sent, or not due in the cell's time."""
    return (
        requests.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64), left=pl.coalesce("ended", "cell_end"))
        .filter(pl.col("status") != "skipped", pl.col("due") <= pl.col("left"))
        .select("place", "due", "admitted", "left", "held_from", "held_to", "put_out")
    )


def _times(rows: pl.DataFrame) -> Times:
    """Of no length are left out."""
    kept = rows.filter(pl.col("end") > pl.col("start"))
    return Times(kept["place"].to_numpy(), kept["start"].to_numpy(), kept["end"].to_numpy())

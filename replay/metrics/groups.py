"""Which groups the requests of a trace fall into: all, by user, by priority, by class of service, by output length.

They are drawn from the trace as a whole, so they are the same in every cell, and a user whom nobody served stays in the
table.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from replay.metrics.statistics import percentile

BREAKDOWNS = ("all", "user", "priority", "class", "length")
NO_USER, NO_PRIORITY, NO_CLASS = "no user", "no priority", "no class"

FACTS = ("request_id", "user", "session", "turn", "priority", "urgency", "slo", "deadline")
SIZES = ("prompt_tokens", "output_tokens", "max_tokens", "arrival")
ROSTER = ("row", *FACTS, *SIZES)
"""What is known of a request before it is replayed."""


def roster(
    tables: Sequence[pl.DataFrame], length_bins: Sequence[int] | None = None, expected: int | None = None
) -> pl.DataFrame:
    """Every request of a trace that any of its cells has a row of, with its group and the group's place, by row.

    `expected` rows are what the trace held: those that no cell lived to write are added, with nothing known of them
    and in no group but "all".
    """
    rows = pl.concat([table.select(ROSTER) for table in tables]).unique("row", keep="first").sort("row")
    lengths = pl.col("output_tokens")
    edges = list(length_bins) if length_bins else quartiles(rows["output_tokens"])
    known = rows.with_columns(
        group_user=pl.col("user").fill_null(NO_USER),
        place_user=pl.col("user").rank("dense").fill_null(pl.len() + 1).cast(pl.Int32),  # "no user" comes last
        group_priority=pl.col("priority").cast(pl.String).fill_null(NO_PRIORITY),
        place_priority=(-pl.col("urgency")).rank("dense").cast(pl.Int32),  # the most urgent comes first
        group_class=pl.col("slo").fill_null(NO_CLASS),
        place_class=pl.col("slo").rank("dense").fill_null(pl.len() + 1).cast(pl.Int32),
        place_length=pl.sum_horizontal([pl.lit(0), *((lengths > edge).cast(pl.Int32) for edge in edges)]),
    ).with_columns(
        group_length=pl.col("place_length").replace_strict(dict(enumerate(bin_names(edges))), return_dtype=pl.String)
    )
    unwritten = pl.DataFrame({"row": pl.int_range(expected or 0, eager=True)}).join(rows, on="row", how="anti")
    everything = pl.concat([known, unwritten], how="diagonal")
    return everything.with_columns(group_all=pl.lit("all"), place_all=pl.lit(0, dtype=pl.Int32))


def quartiles(lengths: pl.Series) -> list[int]:
    """The trace's quartiles as upper edges, without those that would leave a bin empty."""
    if lengths.is_empty():
        return []
    column = pl.col("length")
    cuts = pl.DataFrame({"length": lengths}).select(percentile(column, percent) for percent in (25, 50, 75, 100))
    *edges, largest = (int(cut) for cut in cuts.row(0))
    return sorted({edge for edge in edges if edge < largest})


def bin_names(edges: Sequence[int]) -> list[str]:
    """`1-32 tokens`, `33-100 tokens`, `over 100 tokens`: each edge belongs to the bin that it ends."""
    if not edges:
        return ["any length"]
    starts = [1, *(edge + 1 for edge in edges)]
    closed = [f"{start}-{end} tokens" for start, end in zip(starts, edges, strict=False)]
    return [*closed, f"over {edges[-1]} tokens"]

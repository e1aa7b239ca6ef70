"""A cell as the explorer of the page reads it: who held which slot when, and what became of each request.

Columns of whole numbers, each told by what the reader can guess of it: a span begins where the one before it in its
slot ended, a request is admitted where its first span begins. What is left is mostly zeros; a column of one value is
that value. script/explorer-data.js reads it. Times are in ticks, of `tick` seconds.
"""

from __future__ import annotations

from math import ceil, floor, log10
from typing import Any

import polars as pl

KINDS = ("prefill", "decode", "paused", "padded")
LOST = ("evicted", "swapped")
"""Endings that a bar shows: its request lost its blocks."""
STATUSES = ("completed", "rejected", "timed_out", "cancelled", "failed", "skipped", "unfinished")
STAMPS = ("due", "admitted", "first_token", "last_token", "finished", "ended")
REQUEST = ("row", "user", "priority", "prompt_tokens", "output_tokens", "arrival")
"""What all cells of a trace know of a request."""


def tick_of(extent: float, last: float = 0.0) -> float:
    """A microsecond, or as little as shows a run of `extent` seconds in a million ticks.

    More where the `last` second of all cells would have a tick that no number of a script tells from its neighbour.
    """
    tick = float(min(1e-6, 10.0 ** (floor(log10(extent)) - 6))) if extent > 0 else 1e-6
    return max(tick, 10.0 ** (ceil(log10(last)) - 15)) if last > 0 else tick


def packed_spans(spans: pl.DataFrame, places: pl.DataFrame, tick: float) -> dict[str, Any]:
    """The columns of spans, in the order of slot and time.

    `counts` are spans a slot, from slot 0; `gap` is from the end of the span before it in its slot to its start, and
    `length` from there to its end; `request` is the difference of the request's place in the trace to that of the span
    before; `kind` is its place in `KINDS`, plus 4 where it was then evicted and 8 where swapped; `padding` is tokens;
    `tokens` are less what is guessed: all of a prompt, all but the first token of an answer, none.
    """
    rows = _sorted(spans, places, tick)
    kind = pl.col("kind").replace_strict({name: place for place, name in enumerate(KINDS)}, return_dtype=pl.Int64)
    lost = pl.col("ending").replace_strict({name: 4 * place for place, name in enumerate(LOST, 1)}, default=0)
    guessed = (
        pl.when(pl.col("kind") == "prefill")
        .then("prompt_tokens")
        .when(pl.col("kind") == "decode")
        .then(pl.col("output_tokens") - 1)
        .otherwise(0)
    )
    columns = rows.select(
        gap=pl.col("from") - pl.col("to").shift(1, fill_value=0).over("slot"),
        length=pl.col("to") - pl.col("from"),
        request=pl.col("place").diff().fill_null(pl.col("place")),
        kind=kind + lost.cast(pl.Int64),
        tokens=pl.col("tokens") - guessed,
        padding=pl.when(pl.col("kind") == "padded").then(0).otherwise("padding_tokens"),
    )
    counts = rows.group_by("slot").len().sort("slot")
    every = pl.DataFrame({"slot": range(max(counts["slot"].to_list(), default=-1) + 1)}, schema={"slot": pl.Int64})
    held_slots = every.join(counts, on="slot", how="left", maintain_order="left")["len"].fill_null(0)
    return {"counts": held_slots.to_list(), "count": len(columns), **_lean(columns)}


def _sorted(spans: pl.DataFrame, places: pl.DataFrame, tick: float) -> pl.DataFrame:
    known = places.select("row", "place", "prompt_tokens", "output_tokens")
    return (
        spans.with_columns(_ticks("start", tick).alias("from"), _ticks("end", tick).alias("to"))
        .sort("slot", "start", "end", "row")
        .join(known, on="row", how="inner", maintain_order="left")
    )


def packed_requests(requests: pl.DataFrame, spans: pl.DataFrame, places: pl.DataFrame, tick: float) -> dict[str, Any]:
    """The columns of the requests of a cell, in the order of the trace.

    `place` are their places in the trace as differences, null where they are all of it. Each stamp is less what is
    guessed of it: `due` the arrival; `admitted`, `first_token`, `last_token`, `finished` and `ended` where its spans
    begin, where the first prefill and the last decode ends, and where they end; without such a span, `due`. `status`
    is a place in `STATUSES`, `generated` is less the output tokens, `reasons` are by the position in these columns.
    """
    shared = places.select("row", "place", "output_tokens", arrival_ticks=_ticks("arrival", tick))
    rows = requests.drop("output_tokens", "arrival").join(shared, on="row", how="inner").sort("place")
    rows = rows.with_columns(_ticks(name, tick) for name in STAMPS)
    ends = pl.col("end")
    held = (
        spans.select("row", "kind", _ticks("start", tick), _ticks("end", tick))
        .group_by("row")
        .agg(
            begun=pl.col("start").min(),
            read=ends.filter(pl.col("kind") == "prefill").min(),
            written=ends.filter(pl.col("kind") == "decode").max(),
            left=ends.max(),
        )
    )
    rows = rows.join(held, on="row", how="left", maintain_order="left")
    due = pl.coalesce("due", "arrival_ticks")
    guesses = {"admitted": "begun", "first_token": "read", "last_token": "written", "finished": "left", "ended": "left"}
    status = pl.col("status").replace_strict({name: place for place, name in enumerate(STATUSES)}, default=None)
    columns = rows.select(
        pl.col("due") - pl.col("arrival_ticks"),
        *(pl.col(name) - pl.coalesce(guess, due) for name, guess in guesses.items()),
        status=status.cast(pl.Int64),
        generated=pl.col("generated_tokens") - pl.col("output_tokens"),
        evictions=pl.col("evictions"),
        swaps=pl.col("swaps"),
    )
    whole = rows["place"].to_list() == list(range(len(places)))
    reasons = rows.with_row_index("at").filter(pl.col("reason").is_not_null()).select("at", "reason")
    return {
        "place": None if whole else rows["place"].diff().fill_null(rows["place"]).to_list(),
        "reasons": [list(pair) for pair in reasons.iter_rows()],
        "count": len(columns),
        **_lean(columns),
    }


def _lean(columns: pl.DataFrame) -> dict[str, Any]:
    return {
        column.name: column[0] if len(column) and column.n_unique() == 1 else column.to_list() for column in columns
    }


def _ticks(name: str, tick: float) -> pl.Expr:
    return (pl.col(name) / tick).round().cast(pl.Int64)

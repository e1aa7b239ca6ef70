"""Brings the rows of a cell together with what its metrics need beside them: goals, windows, the pool's size.

Rows that a killed cell never wrote are filled in from the trace's roster as unfinished, so that counts add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from replay.metrics.backlog import backlogs
from replay.metrics.engine_facts import BUSY, use_columns, work_columns
from replay.metrics.groups import ROSTER
from replay.metrics.metric import of
from replay.metrics.queueing import steps_waited
from replay.metrics.residence import stays
from replay.metrics.service import weights
from replay.metrics.windows import windows
from replay.results import Cell, Goals, Service

WARM_UP = 0.1
"""The share of the arrival span that the steady window leaves out at its start."""


@dataclass(frozen=True, slots=True)
class Window:
    """The steady window of a trace, between two arrival times in seconds from the clock's zero."""

    start: float
    end: float


def steady_window(roster: pl.DataFrame) -> Window:
    """From a tenth of the arrival span to the last arrival. Of no length when all arrive at once."""
    arrivals = roster["arrival"].drop_nulls().sort()
    if arrivals.is_empty():
        return Window(0.0, 0.0)
    first, last = float(arrivals[0]), float(arrivals[-1])
    return Window(first + WARM_UP * (last - first), last)


@dataclass(frozen=True, slots=True)
class CellFrames:
    """A cell's tables, ready for metrics: every request of the trace, with each per-request metric as a column."""

    cell: Cell
    requests: pl.DataFrame
    steps: pl.DataFrame
    spans: pl.DataFrame
    windows: pl.DataFrame
    backlogs: pl.DataFrame


def expected_seconds(cell: Cell) -> pl.Expr:
    """What the engine's cost model gives for each step; null where the manifest has none.

    In a padded step all of the rectangle is computed: as prefill in the step of the prompts, as decodes in the others.
    """
    if cell.cost is None:
        return pl.lit(None, dtype=pl.Float64)
    prefills = pl.col("prefill_tokens") > 0
    prefill = pl.col("prefill_tokens") + pl.when(prefills).then(pl.col("padding_tokens")).otherwise(0)
    decodes = pl.col("decodes") + pl.when(prefills).then(0).otherwise(pl.col("padding_tokens"))
    swapped = pl.col("swapped_out") + pl.col("swapped_in")
    counts = {"prefill": prefill, "decode": decodes, "context": pl.col("context_tokens"), "swap": swapped}
    return sum((cell.cost.get(name, 0.0) * count for name, count in counts.items()), pl.lit(cell.cost["fixed"]))


def prepare(
    cell: Cell,
    rows: pl.DataFrame,
    roster: pl.DataFrame,
    goals: Goals,
    window: Window,
    service: Service,
    length: float | None,
) -> CellFrames:
    """The frames of one cell; `rows` is its table of requests, `length` the seconds of a window of fairness."""
    steps, spans = cell.table("steps"), cell.table("spans")
    outcome = rows.select("row", *(name for name in rows.columns if name not in ROSTER))
    requests = (
        roster.join(outcome, on="row", how="left", maintain_order="left")
        .join(stays(spans), on="row", how="left", maintain_order="left")
        .with_columns(
            pl.col("due").fill_null(pl.col("arrival")),
            pl.col("status").fill_null("unfinished"),
            pl.col("generated_tokens", "recomputed_tokens", "evictions").fill_null(0),
        )
    )
    start = requests["due"].min() if len(requests) else None
    ends = [end for end in (requests["ended"].max(), steps["end"].max()) if end is not None]
    bounds = {
        "cell_start": pl.lit(start, dtype=pl.Float64),
        "cell_end": pl.lit(max(ends) if ends else None, dtype=pl.Float64),
        "blocks": pl.lit(cell.blocks, dtype=pl.Float64),
    }
    lasted = bounds["cell_end"] >= window.end  # else it has no steady window to tell of, and no drain
    inside = pl.element().is_between(window.start, window.end)
    constants: dict[str, pl.Expr | pl.Series] = {
        **bounds,
        "padded": pl.lit(cell.padded),
        "steps_waited": steps_waited(requests, steps, padded=cell.padded),
        "price_per_hour": pl.lit(cell.price_per_hour, dtype=pl.Float64),
        "goal_ttft": pl.lit(goals.ttft, dtype=pl.Float64),
        "goal_tpot": pl.lit(goals.tpot, dtype=pl.Float64),
        "goal_e2e": pl.lit(goals.e2e, dtype=pl.Float64),
        "goal_reading": pl.lit(goals.reading, dtype=pl.Float64),
        **weights(service),
        "steady_start": pl.when(lasted).then(window.start),
        "steady_end": pl.when(lasted).then(window.end),
        "tokens_steady": pl.col("token_times").list.eval(inside).list.sum(),
        "tokens_drain": pl.col("token_times").list.eval(pl.element() > window.end).list.sum(),
    }
    known = requests.with_columns(**constants)
    return CellFrames(
        cell,
        known.with_columns(entry.expression.alias(entry.name) for entry in of("requests", "each")),
        steps.with_columns(
            **bounds, **work_columns(cell), **use_columns(cell), expected=expected_seconds(cell), busy=BUSY
        ),
        spans.with_columns(**bounds, slots=pl.lit(cell.slots, dtype=pl.Float64)),
        windows(known, length),
        backlogs(known),
    )

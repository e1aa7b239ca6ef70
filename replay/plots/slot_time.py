"""What the picture of the slots shows and says: which seconds, how slot time was spent in them, who waited."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.errors import ExperimentError
from replay.metrics.engine import HELD, OWN_SECONDS, PAUSED_SECONDS
from replay.metrics.notation import number
from replay.results import Cell

BARS = 40
"""Requests that a panel can show in its width and still be read."""


@dataclass(frozen=True, slots=True)
class Window:
    """The seconds that are shown, the same for all modes."""

    start: float
    end: float
    whole: bool


def choose_window(tables: list[pl.DataFrame], last_arrival: float) -> Window:
    """The whole run where it can be read; else the window in which every mode is as near to its fullest as can be.

    It ends by the last arrival, or begins with the run: while requests arrive, the queue shows what a mode does.
    """
    filled = [table for table in tables if len(table)]
    start, end = extent(tables)
    length = end - start
    for table in filled:
        residents = table["row"].n_unique()
        busy = float(table.select(pl.col("end").max() - pl.col("start").min()).item())
        length = min(length, busy * BARS / residents) if busy > 0 else length
    if length >= 0.85 * (end - start):
        return Window(start, end, whole=True)
    starts = np.linspace(start, max(start, min(last_arrival, end) - length), 200)
    seconds = [_slot_seconds(table, starts, length) for table in filled]
    held = np.min([found / max(found.max(), 1e-9) for found in seconds], axis=0)
    best = float(starts[int(np.argmax(held))])
    return Window(best, best + length, whole=False)


def asked_window(tables: list[pl.DataFrame], start: float, end: float) -> Window:
    """The seconds that were asked for. ExperimentError where they are none, or nobody held a slot in them."""
    first, last = extent(tables)
    if start >= end:
        raise ExperimentError(f"window: {start:g} s to {end:g} s is no time; the end comes after the beginning")
    if start >= last or end <= first:
        shown = f"{start:g} s to {end:g} s"
        raise ExperimentError(f"window: nobody held a slot from {shown}; slots are held from {first:g} s to {last:g} s")
    return Window(start, end, whole=start <= first and end >= last)


def extent(tables: list[pl.DataFrame]) -> tuple[float, float]:
    """From the first span to the last; a second where they are none or take no time."""
    filled = [table for table in tables if len(table)]
    start = min((float(table.select(pl.col("start").min()).item()) for table in filled), default=0.0)
    end = max((float(table.select(pl.col("end").max()).item()) for table in filled), default=start)
    return start, end if end > start else start + 1.0


def _slot_seconds(spans: pl.DataFrame, starts: NDArray[np.float64], length: float) -> NDArray[np.float64]:
    """Slot seconds held in the window from each of `starts`: from the running total of the slots held."""
    edges = np.concatenate([spans["start"].to_numpy(), spans["end"].to_numpy()])
    change = np.concatenate([np.ones(len(spans)), -np.ones(len(spans))])
    order = np.argsort(edges, kind="stable")
    edges, held = edges[order], np.cumsum(change[order])
    total = np.concatenate([[0.0], np.cumsum(held[:-1] * np.diff(edges))])
    return np.asarray(np.interp(starts + length, edges, total) - np.interp(starts, edges, total))


def slot_shares(spans: pl.DataFrame, slots: int, window: Window) -> str:
    """`62 % of slot time useful, 21 % padding, 17 % idle`, within the window. The numbers add up to 100."""
    length = window.end - window.start
    clipped = spans.with_columns(
        pl.col("start").clip(window.start, window.end), pl.col("end").clip(window.start, window.end)
    )
    useful, paused, held = clipped.select(
        OWN_SECONDS.sum().alias("useful"), PAUSED_SECONDS.sum().alias("paused"), HELD.sum().alias("held")
    ).row(0)
    total = slots * length
    parts = {
        "of slot time useful": useful,
        "padding": held - useful - paused,
        "paused": paused,
        "idle": total - held,
    }
    whole = _whole_percent([seconds / total for seconds in parts.values()])
    told = dict(zip(parts, whole, strict=True))
    return ", ".join(f"{share} % {name}" for name, share in told.items() if name != "paused" or share)


def _whole_percent(shares: list[float]) -> list[int]:
    """Percentages without decimals that add up to 100: what rounding down leaves goes to the largest remainders."""
    exact = [max(share, 0.0) * 100 for share in shares]  # a difference of sums can lie a hair below zero
    found = [int(value + 1e-9) for value in exact]
    order = sorted(range(len(exact)), key=lambda place: (round(found[place] - exact[place], 6), -exact[place]))
    for place in order[: max(100 - sum(found), 0)]:
        found[place] += 1
    return found


def queue(cell: Cell) -> pl.DataFrame:
    """How many requests had become due and were not yet admitted, at each instant at which that changed."""
    rows = cell.table("requests").select("due", left=pl.coalesce("admitted", "ended")).drop_nulls()
    changes = pl.concat([rows.select(time="due", change=pl.lit(1)), rows.select(time="left", change=pl.lit(-1))])
    instants = changes.group_by("time").agg(pl.col("change").sum()).sort("time")
    return instants.select("time", waiting=pl.col("change").cum_sum())


def mean_queue(waiting: pl.DataFrame, window: Window) -> str:
    """`14.2 requests waiting on average`, within the window."""
    start = pl.col("time").clip(window.start, window.end)
    end = pl.col("time").shift(-1, fill_value=window.end).clip(window.start, window.end)
    seconds = waiting.select(((end - start) * pl.col("waiting")).sum()).item()
    return f"{number(seconds / (window.end - window.start), 2)} requests waiting on average"

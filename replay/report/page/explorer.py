"""What the page's explorer shows of a trace: which cells there are, their requests, and the seconds to begin with.

Who held which slot when is packed cell by cell, and unpacked when the reader chooses it; what the cells of a trace
share is packed once. Of a cell that is too large for a page it says which part is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.contrasts import base_policy
from replay.metrics.engine import BOUNDS
from replay.plots.slot_time import Window, choose_window
from replay.plots.view import View
from replay.report.page.blobs import packed_json
from replay.report.page.explorer_bins import overview
from replay.report.page.explorer_budget import BUDGET, cut, share_of, size_of
from replay.report.page.explorer_cell import KINDS, REQUEST, STATUSES, packed_requests, packed_spans, tick_of
from replay.results import Cell

QUICK = 6
"""Of gzip: what it leaves of numbers is hardly more than its best."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A cell with its arm and its rows; `requests` and `spans` are those of `kept` (None: all of them)."""

    arm: Arm
    cell: Cell
    extent: tuple[float, float]
    overview: Mapping[str, Any]
    spans: pl.DataFrame
    requests: pl.DataFrame
    kept: Window | None


def explorers(views: Sequence[View], budget: int | None = None) -> dict[str, str]:
    """Blobs by name: `explorer-0` for the first trace, and `explorer-0-3` for the fourth of its cells.

    `budget` is how many spans, and requests, they may hold; None: `BUDGET`.
    """
    budget = BUDGET if budget is None else budget
    share = share_of([size_of(cell) for view in views for arm in view.arms for cell in arm.cells], budget)
    found = [_blobs(place, view.arms, share) for place, view in enumerate(views)]
    return {name: blob for blobs in found for name, blob in blobs.items()}


def _blobs(place: int, arms: Sequence[Arm], share: int) -> dict[str, str]:
    window = _window(arms)
    kept = [_read(arm, cell, window, share) for arm in arms for cell in arm.cells]
    known = pl.concat([each.requests.select(REQUEST) for each in kept])
    places = known.unique("row", keep="first", maintain_order=True).sort("row").with_row_index("place")
    places = places.with_columns(pl.col("place").cast(pl.Int64))
    extents = [each.extent for each in kept]
    shortest = min((end - start for start, end in extents), default=1.0)
    tick = tick_of(shortest, max((end for _, end in extents), default=0.0))
    cells = {f"explorer-{place}-{number}": _cell(each, places, tick) for number, each in enumerate(kept)}
    whole = {
        "tick": tick,
        "kinds": KINDS,
        "statuses": STATUSES,
        "bounds": BOUNDS,
        "window": [window.start, window.end],
        "requests": _shared(places, tick),
        "cells": [_entry(each, name) for each, name in zip(kept, cells, strict=True)],
    }
    return {name: packed_json(content, QUICK) for name, content in {f"explorer-{place}": whole, **cells}.items()}


def _window(arms: Sequence[Arm]) -> Window:
    """The seconds to begin with: those of the static picture, where each mode of the base policy is fullest."""
    policy = base_policy(arms).policy
    cells = [arm.shown for arm in arms if arm.policy == policy]
    last_due = max((_last(cell.table("requests"), "due") for cell in cells), default=0.0)
    return choose_window([cell.table("spans").select("row", "start", "end") for cell in cells], last_due)


def _last(rows: pl.DataFrame, column: str) -> float:
    return max(rows[column].drop_nulls().to_list(), default=0.0)


def _read(arm: Arm, cell: Cell, window: Window, share: int) -> Recorded:
    """One cell at a time: a run may be larger than the memory, what is kept of it is not."""
    steps, requests = cell.table("steps"), cell.table("requests").drop("token_times")
    spans = cell.table("spans").sort("start", "end", "slot")
    extent = _extent(spans, steps, requests)
    bins, kept = overview(steps, requests, extent, cell.blocks), None
    if max(len(spans), len(requests)) > share:
        spans, requests, kept = cut(spans, requests, extent, window, share)
    return Recorded(arm, cell, extent, bins, spans, requests, kept)


def _extent(spans: pl.DataFrame, steps: pl.DataFrame, rows: pl.DataFrame) -> tuple[float, float]:
    """From the first that is known of a cell to the last; a second where that is no time."""
    first = [rows["due"].min(), spans["start"].min(), steps["start"].min()]
    last = [rows["due"].max(), rows["ended"].max(), spans["end"].max(), steps["end"].max()]
    start = min((float(value) for value in first if isinstance(value, float)), default=0.0)
    end = max((float(value) for value in last if isinstance(value, float)), default=start)
    return start, end if end > start else start + 1.0


def _shared(places: pl.DataFrame, tick: float) -> dict[str, Any]:
    """What is known of the requests in whatever cell: `row` and `arrival` as differences, users by their place."""
    users = places["user"].drop_nulls().unique(maintain_order=True)
    numbers = dict(zip(users.to_list(), range(len(users)), strict=True))
    arrival = (places["arrival"] / tick).round().cast(pl.Int64)
    return {
        "row": places["row"].diff().fill_null(places["row"]).to_list(),
        "arrival": arrival.diff().fill_null(arrival).to_list(),
        "user": [None if name is None else numbers[name] for name in places["user"].to_list()],
        "users": users.to_list(),
        "priority": places["priority"].to_list(),
        "prompt": places["prompt_tokens"].to_list(),
        "output": places["output_tokens"].to_list(),
    }


def _entry(each: Recorded, blob: str) -> Mapping[str, Any]:
    """What the reader chooses by, and what must be said of it."""
    cell, arm = each.cell, each.arm
    return {
        "blob": blob,
        "name": cell.name,
        "setting": arm.setting,
        "policy": arm.policy,
        "repeat": cell.repeat + 1,
        "slots": cell.slots,
        "invalid": None if cell.valid else cell.invalid_reason or "",
        "partial": cell.partial,
        "simulated": cell.simulated,
        "spans": len(each.spans),
        "kept": None if each.kept is None else [each.kept.start, each.kept.end],
    }


def _cell(each: Recorded, places: pl.DataFrame, tick: float) -> dict[str, Any]:
    return {
        "span": list(each.extent),
        "overview": each.overview,
        "spans": packed_spans(each.spans, places, tick),
        "requests": packed_requests(each.requests, each.spans, places, tick),
    }

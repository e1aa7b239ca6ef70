"""How a whole replay went, in at most a thousand bins of time: the overview in which the reader brushes a window."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.metrics.engine import BOUNDS

BINS = 1000
"""A screen is hardly wider."""
TENTHS = 10

Floats = NDArray[np.float64]


def overview(
    steps: pl.DataFrame, requests: pl.DataFrame, span: tuple[float, float], blocks: int | None
) -> dict[str, Any]:
    """Columns of whole numbers, a value for each bin; the bins are of equal length, over `span` in seconds.

    `running` and `waiting` are averages over the bin, in tenths of a request; `kv` is the percentage of the pool's
    blocks in use, None without a pool; `rate` is tokens of answers a second; `evicted` counts; `bound` is the place in
    `BOUNDS` of what bound the most seconds of the bin, null where nothing was computed.
    """
    steps = steps.sort("start", "end", "step")
    count = max(1, min(BINS, 2 * max(len(steps), len(requests))))
    edges, length = np.linspace(*span, count + 1), (span[1] - span[0]) / count
    start, end = (steps[name].to_numpy().astype(np.float64) for name in ("start", "end"))
    seconds, gaps = end - start, np.maximum(start - np.concatenate([start[:1], end[:-1]]), 0.0)
    times = np.maximum.accumulate(np.column_stack([start, end]).ravel())
    bound = steps["bound"].fill_null("nothing").to_numpy()
    held = np.array([_total(times, seconds * (bound == name), edges) for name in BOUNDS])
    tokens, running, used, evicted = (
        steps[name].cast(pl.Float64).to_numpy() for name in ("new_tokens", "running", "used_blocks", "evicted")
    )
    stayed = np.maximum(running - steps["admitted"].to_numpy(), 0.0)  # residents between a step and the one before
    kept = np.where(stayed > 0, np.concatenate([used[:1], used[:-1]]), 0.0)
    place = np.clip(np.searchsorted(edges, start, side="right") - 1, 0, count - 1)
    most, busy = held.argmax(axis=0).tolist(), (held.sum(axis=0) > 1e-9 * length).tolist()
    return {
        "running": _whole(_total(times, running * seconds, edges, stayed * gaps) / length * TENTHS),
        "waiting": _whole(_waited(requests, edges) / length * TENTHS),
        "kv": _whole(_total(times, used * seconds, edges, kept * gaps) / length / blocks * 100) if blocks else None,
        "rate": _whole(_total(times, tokens, edges) / length),
        "evicted": _whole(np.bincount(place, weights=evicted, minlength=count).astype(np.float64)),
        "bound": [name if any_ else None for name, any_ in zip(most, busy, strict=True)],
    }


def _total(times: Floats, amounts: Floats, edges: Floats, between: Floats | None = None) -> Floats:
    """What falls into each bin of the amounts of steps, each of which accrues evenly; `times` are their starts and
    ends, in turn. What accrues before each, since the end of the one before it, is in `between`."""
    if not len(times) or not amounts.any():
        return np.zeros(len(edges) - 1)
    total = np.cumsum(np.column_stack([np.zeros(len(amounts)) if between is None else between, amounts]).ravel())
    return np.diff(np.interp(edges, times, total, left=0.0))


def _waited(requests: pl.DataFrame, edges: Floats) -> Floats:
    """Request seconds in each bin from when requests were due to when they were admitted, or left without that."""
    rows = requests.select("due", left=pl.coalesce("admitted", "ended")).drop_nulls()
    return np.diff(_since(rows["due"], edges) - _since(rows["left"], edges))


def _since(times: pl.Series, edges: Floats) -> Floats:
    """At each edge, the seconds since each of `times` that has passed, in all."""
    passed = times.sort().to_numpy()
    count = np.searchsorted(passed, edges, side="right")
    return np.asarray(count * edges - np.concatenate([[0.0], np.cumsum(passed)])[count])


def _whole(values: Floats) -> list[int]:
    return [int(value) for value in np.rint(np.maximum(values, 0.0)).tolist()]

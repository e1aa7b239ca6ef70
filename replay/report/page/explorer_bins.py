"""How a whole replay went, in at most a thousand bins of time: the overview in which the reader brushes a window."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from replay.metrics.engine import BOUNDS
from replay.metrics.over_time import Floats, accrued

BINS = 1000
"""A screen is hardly wider."""
TENTHS = 10


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
    bound = steps["bound"].fill_null("nothing").to_numpy()
    held = np.array([accrued(start, end, seconds * (bound == name), edges) for name in BOUNDS])
    tokens, running, used, evicted = (
        steps[name].cast(pl.Float64).to_numpy() for name in ("new_tokens", "running", "used_blocks", "evicted")
    )
    stayed = np.maximum(running - steps["admitted"].to_numpy(), 0.0)  # residents between a step and the one before
    kept = np.where(stayed > 0, np.concatenate([used[:1], used[:-1]]), 0.0)
    filled = accrued(start, end, used * seconds, edges, kept * gaps)
    place = np.clip(np.searchsorted(edges, start, side="right") - 1, 0, count - 1)
    most, busy = held.argmax(axis=0).tolist(), (held.sum(axis=0) > 1e-9 * length).tolist()
    return {
        "running": _whole(accrued(start, end, running * seconds, edges, stayed * gaps) / length * TENTHS),
        "waiting": _whole(_waited(requests, edges) / length * TENTHS),
        "kv": _whole(filled / length / blocks * 100) if blocks else None,
        "rate": _whole(accrued(start, end, tokens, edges) / length),
        "evicted": _whole(np.bincount(place, weights=evicted, minlength=count).astype(np.float64)),
        "bound": [name if any_ else None for name, any_ in zip(most, busy, strict=True)],
    }


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

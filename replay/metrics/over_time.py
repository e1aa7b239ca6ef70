"""What falls into bins of time, of amounts that accrue evenly while steps last. It does not know what is counted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def accrued(starts: Floats, ends: Floats, amounts: Floats, edges: Floats, between: Floats | None = None) -> Floats:
    """Of each bin between two `edges` the share of the steps' amounts that falls into it; steps are in order, and what
    overlaps counts from where the one before it ends. What accrues before each step, since the end of the one before
    it, is in `between`."""
    if not len(starts) or not amounts.any():
        return np.zeros(len(edges) - 1)
    times = np.maximum.accumulate(np.column_stack([starts, ends]).ravel())
    before = np.zeros(len(amounts)) if between is None else between
    total = np.cumsum(np.column_stack([before, amounts]).ravel())
    return np.diff(np.interp(edges, times, total, left=0.0))

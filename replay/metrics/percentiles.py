"""How surely a difference of two percentiles is known: by draws, for a percentile is no mean of anything.

Each side's is the mean over its repeats, and the same blocks of consecutive requests are drawn for both. Such an error
is counted on as little as one of as few slow waves; how often percentiles are claimed falsely was not measured. It
knows no metric and no arm.
"""

from __future__ import annotations

import math

import numpy as np

from replay.metrics.resampling import RESAMPLES, Draws, Floats, block_starts, drawn_length
from replay.metrics.slow_waves import waves

DRAWN = 20_000_000
"""Values drawn for one percentile, about; of a long trace there are fewer resamples."""
FEWEST = 400
BEYOND = 5
"""Requests that must lie beyond a percentile: with fewer, one slow request is the figure."""
AT_ONCE = 4_000_000


def enough(n: int, share: float) -> bool:
    """Whether a percentile of so many requests is more than one request's luck."""
    return round(n * min(share, 1 - share), 6) >= BEYOND


def blocks(n: int) -> float:
    """The degrees of freedom of a percentile that remembers no queue: the blocks that are drawn, less one."""
    return n / drawn_length(n) - 1


def strayed(base: Floats, other: Floats, share: float, seed: int) -> tuple[float, float, Draws]:
    """The standard error of the difference, the degrees of freedom that it rests on (0: too few requests lie beyond
    the percentile), and how far each draw strays, in standard errors. A row a repeat, requests in order of arrival;
    all have a value."""
    n = base.shape[1]
    if not enough(n, share):
        return 0.0, 0.0, np.zeros(RESAMPLES, np.float32)
    length = drawn_length(n)
    starts = block_starts(n, seed)[: min(RESAMPLES, max(FEWEST, DRAWN // n))]
    found = []
    for part in np.array_split(starts, math.ceil(len(starts) * n / AT_ONCE)):
        drawn = ((part[:, :, None] + np.arange(length)) % n).reshape(len(part), -1)
        means = [
            np.mean([np.quantile(values[drawn], share, axis=1, method="linear") for values in side], axis=0)
            for side in (base, other)
        ]
        found.append(means[1] - means[0])
    differences = np.concatenate(found)
    error = float(differences.std())
    if error <= 1e-12 * float(np.abs(differences).max()):
        return 0.0, float(waves(n)), np.zeros(RESAMPLES, np.float32)
    normal = np.resize((differences - differences.mean()) / error, RESAMPLES).astype(np.float32)
    return error * math.sqrt(n / max(n - length, 1)), float(waves(n)), normal

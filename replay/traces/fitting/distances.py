"""How far two samples lie apart: the Kolmogorov-Smirnov distance, and the ranks' correlation within each.

It knows numbers, not traces. A sample is held as its distinct values and how often each occurs, so that lengths of
many millions of requests take no more room than lengths of a few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Wholes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sample:
    """Distinct values, rising, and how often each occurs."""

    values: Numbers
    counts: Wholes

    @property
    def size(self) -> int:
        """How many there are, equal ones counted each."""
        return int(self.counts.sum())

    def mean(self) -> float | None:
        """Null where there is none."""
        return float(np.average(self.values, weights=self.counts)) if self.size else None

    def quantile(self, share: float) -> float | None:
        """Linear-interpolated between the two values around place `share * (n - 1)`; null where there is none."""
        if not self.size:
            return None
        place = share * (self.size - 1)
        upto = np.cumsum(self.counts)
        low, high = (self.values[np.searchsorted(upto, int(at), "right")] for at in (np.floor(place), np.ceil(place)))
        return float(low + (high - low) * (place - np.floor(place)))


def sample_of(numbers: NDArray[np.generic]) -> Sample:
    """The sample that these numbers are, in any order."""
    values, counts = np.unique(np.asarray(numbers, dtype=np.float64), return_counts=True)
    return Sample(values, counts.astype(np.int64))


def ks_distance(one: Sample, other: Sample) -> float | None:
    """sup |F1 - F2|, F the share of values at or below x: looked at behind each value, so that ties count as one step.

    Null where a sample is empty.
    """
    if not one.size or not other.size:
        return None
    at = np.union1d(one.values, other.values)
    return float(np.abs(_share_upto(one, at) - _share_upto(other, at)).max())


def _share_upto(sample: Sample, at: Numbers) -> Numbers:
    upto = np.concatenate([[0], np.cumsum(sample.counts)])
    shares: Numbers = upto[np.searchsorted(sample.values, at, "right")] / sample.size
    return shares


def rank_correlation(first: NDArray[np.generic], second: NDArray[np.generic]) -> float | None:
    """Spearman's: the correlation of ranks, equal values having the mean of theirs; null where one never varies."""
    return correlation(_ranks(first), _ranks(second))


def _ranks(numbers: NDArray[np.generic]) -> Numbers:
    _, which, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    ranks: Numbers = (np.cumsum(counts) - (counts - 1) / 2)[which]
    return ranks


def correlation(first: Numbers, second: Numbers) -> float | None:
    """Pearson's; null where one never varies or there are less than two."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def lag_one(counts: NDArray[np.generic]) -> float | None:
    """How far a count goes with the one before it, from -1 to 1; null where none varies."""
    numbers = np.asarray(counts, dtype=np.float64)
    return correlation(numbers[:-1], numbers[1:])

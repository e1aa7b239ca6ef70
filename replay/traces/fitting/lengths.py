"""Lengths as quantiles: as few evenly spaced ones as keep the mean and the tail, and no exact value that is rare.

It knows numbers alone; what they count is the caller's affair.
"""

from __future__ import annotations

import math

import numpy as np

from replay.traces.fitting.distances import Numbers, Sample

POINTS = (5, 11, 21, 51, 101, 201, 501, 1001)
EACH = 5  # requests between two quantiles, at least: no value stands for fewer, but the first and the last
KEPT = {0.5: 0.02, 0.9: 0.02, 0.99: 0.02, 0.999: 0.02}  # quantile: how far it may be off, as a share
MEAN_KEPT = 0.01
DISTANCE_KEPT = 0.02


def fit_quantiles(sample: Sample, points: int | None = None) -> list[int]:
    """Quantiles evenly spaced in probability from the least to the most; as many as needed unless it is said."""
    allowed = [count for count in POINTS if count <= max(POINTS[0], sample.size // EACH)]
    if points is not None:
        return rounded_ends(sample, spaced(sample, min(points, allowed[-1])))
    found = [rounded_ends(sample, spaced(sample, count)) for count in allowed]
    good = (each for each in found if keeps(sample, each))
    return next(good, None) or min(found, key=lambda each: abs(mean_of(each) - (sample.mean() or 0.0)))


def mean_of(quantiles: list[int]) -> float:
    """Of what is drawn between them."""
    return sum(quantiles[:-1] + quantiles[1:]) / (2 * len(quantiles) - 2)


def spaced(sample: Sample, count: int) -> list[int]:
    """So many quantiles, in whole numbers."""
    if sample.values[0] == sample.values[-1]:
        return [int(sample.values[0])] * 2
    return [round(sample.quantile(place / (count - 1)) or 0) for place in range(count)]


def rounded_ends(sample: Sample, quantiles: list[int]) -> list[int]:
    """The same with the first and the last to two digits, unless so many requests had them that they tell of none."""
    first, *_, last = quantiles
    if sample.counts[0] < EACH:
        first = min(two_digits(first), quantiles[1])
    if sample.counts[-1] < EACH:
        last = max(two_digits(last), quantiles[-2])
    return [first, *quantiles[1:-1], last]


def two_digits(number: int) -> int:
    """13,987 becomes 14,000; below 100 nothing changes."""
    unit = int(10 ** max(0, int(math.log10(max(number, 1))) - 1))
    return (number + unit // 2) // unit * unit


def distance_between(sample: Sample, quantiles: list[int]) -> float:
    """Kolmogorov and Smirnov's, of the sample and of whole numbers that are drawn between the quantiles."""
    places = np.linspace(0, 1, len(quantiles))
    upto = np.cumsum(sample.counts) / sample.size
    drawn = np.interp(sample.values + 0.5, quantiles, places)
    below = np.interp(sample.values - 0.5, quantiles, places)
    return float(max(np.abs(drawn - upto).max(), np.abs(below[1:] - upto[:-1]).max(initial=0.0)))


def keeps(sample: Sample, quantiles: list[int]) -> bool:
    """Whether what is drawn between these has the distribution, the mean and, where requests lie beyond, the tail."""
    line: Numbers = np.asarray(quantiles, dtype=np.float64)
    places = np.linspace(0, 1, len(line))
    mean = sample.mean() or 0.0
    if abs(mean_of(quantiles) - mean) > max(MEAN_KEPT * mean, 0.5):
        return False
    if distance_between(sample, quantiles) > DISTANCE_KEPT:
        return False
    for share, off in KEPT.items():
        there = sample.quantile(share) or 0.0
        if (1 - share) * sample.size >= EACH and abs(float(np.interp(share, places, line)) - there) > max(
            off * there, 0.5
        ):
            return False
    return True

"""Comparisons of two arms over the same requests: what differs, by how much, and how sure that is.

The same requests ran in both, so differences are taken request by request. Neighbours share a queue, so the bootstrap
draws blocks of consecutive arrivals (a circular block bootstrap: D. N. Politis, J. P. Romano, 1992), not single
requests. A difference is claimed only where its interval excludes zero and, with repeats, where it is larger than the
largest difference between two repeats of one arm. Nor is it claimed where the arm that did better ran while the machine
was faster, unless the difference is far larger than that alone would make.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.metrics.arms import Arm, Values

CONFIDENCE = 0.95
RESAMPLES = 2000
TIE = 0.05
"""Relative difference of two numbers that have no interval (throughput, run once) up to which they count as equal."""
STEADY = 1.05
"""Ratio of the slowest to the fastest pace up to which nothing is said of the machine's speed."""
AMPLIFICATION = {"output_throughput": 1.0}
QUEUE_AMPLIFICATION = 5.0
"""A slower machine shows in throughput at its own ratio, and in a queue's waits at a power of it."""
PAIRED = ("ttft", "ttft_delivered", "tpot", "e2e", "good")
HIGHER_IS_BETTER = ("good", "output_throughput", "jain")


@dataclass(frozen=True, slots=True)
class Difference:
    """`other` - `base` in one metric: the mean over the `pairs` requests that have it in both.

    `low` and `high` bound it (None: no interval), `noise` is the largest difference between two repeats of one arm
    (None: not measured). `advantage` is how many times faster the machine was when `other` ran (None: not known).
    """

    metric: str
    base: Arm
    other: Arm
    pairs: int
    base_mean: float | None
    difference: float | None
    low: float | None
    high: float | None
    noise: float | None
    advantage: float | None = None

    @property
    def seen(self) -> bool:
        """Whether the difference may be claimed."""
        return self.apparent and not self.confounded

    @property
    def confounded(self) -> bool:
        """Whether the machine's speed may be what made it: whoever did better had the faster machine."""
        if self.advantage is None or not self.difference or not self.base_mean:
            return False
        other_mean = self.base_mean + self.difference
        if other_mean <= 0 or self.base_mean < 0:
            return False
        rises = self.metric in HIGHER_IS_BETTER
        better = rises == (self.difference > 0)  # the other did better
        helped = self.advantage if better else 1 / self.advantage
        effect = max(other_mean, self.base_mean) / min(other_mean, self.base_mean)
        return helped > 1 and effect <= helped ** AMPLIFICATION.get(self.metric, QUEUE_AMPLIFICATION)

    @property
    def apparent(self) -> bool:
        """Whether the rows show a difference, whatever made it."""
        if self.difference is None or self.difference == 0:
            return False
        if self.noise is not None and abs(self.difference) <= self.noise:
            return False
        if self.low is not None and self.high is not None:
            return self.low > 0 or self.high < 0
        if self.metric in PAIRED:
            return False  # a single request has no interval
        if self.noise is not None:
            return True
        return self.base_mean is not None and abs(self.difference) > TIE * abs(self.base_mean)

    @property
    def doubt(self) -> str | None:
        """Why the difference may not be claimed, in a word or two; None where it may, or where there is none."""
        if self.difference is None or self.seen or not (self.difference or self.low or self.high):
            return None
        if self.apparent:
            return "unequal pace"
        return "within noise" if self.noise is not None and abs(self.difference) <= self.noise else "not certain"

    @property
    def merit(self) -> int:
        """1 where `other` may be said to do better, -1 where worse, 0 where nothing may be said."""
        if not self.seen or not self.difference:
            return 0
        return 1 if (self.difference > 0) == (self.metric in HIGHER_IS_BETTER) else -1

    @property
    def relative(self) -> float | None:
        """The difference as a share of the base's mean."""
        if self.difference is None or not self.base_mean:
            return None
        return self.difference / self.base_mean


def interval(differences: NDArray[np.float64], seed: int) -> tuple[float, float] | None:
    """The bootstrap interval of the mean of `differences`, which are in order of arrival; None for fewer than two."""
    n = len(differences)
    if n < 2:
        return None
    length = math.ceil(math.sqrt(n))
    ring = np.concatenate([[0.0], np.cumsum(np.concatenate([differences, differences[: length - 1]]))])
    sums = ring[length:] - ring[:-length]  # of the block that starts at each request
    blocks = math.ceil(n / length)
    drawn = np.random.default_rng(seed).integers(0, n, size=(RESAMPLES, blocks))
    means = sums[drawn].sum(axis=1) / (blocks * length)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail], method="linear")
    return float(low), float(high)


def advantage(values: Values, base: Arm, other: Arm) -> float | None:
    """How many times faster the machine was when `other` ran than when `base` did."""
    paces = [values.value(arm, "pace", "value") for arm in (base, other)]
    return paces[0] / paces[1] if paces[0] and paces[1] else None


def compare(requests: pl.DataFrame, values: Values, metric: str, base: Arm, other: Arm, seed: int = 0) -> Difference:
    """The paired difference in a per-request metric; `requests` are `Measured.requests`."""
    means = [_by_request(requests, metric, arm) for arm in (base, other)]
    pairs = means[0].join(means[1], on="row", suffix="_other").sort("arrival", "row")
    n = len(pairs)
    differences = (pairs["value_other"] - pairs["value"]).to_numpy()
    bounds = interval(differences, seed)
    return Difference(
        metric,
        base,
        other,
        pairs=n,
        base_mean=float(pairs["value"].to_numpy().mean()) if n else None,
        difference=round(float(differences.mean()), 12) if n else None,
        low=round(bounds[0], 12) if bounds else None,
        high=round(bounds[1], 12) if bounds else None,
        noise=_largest(_repeat_means(requests, metric, arm) for arm in (base, other)),
        advantage=advantage(values, base, other),
    )


def _by_request(requests: pl.DataFrame, metric: str, arm: Arm) -> pl.DataFrame:
    """Each request's mean over the repeats in which it has the metric."""
    rows = requests.filter(pl.col("cell").is_in(arm.names)).drop_nulls(metric)
    return rows.group_by("row").agg(pl.col("arrival").first(), value=pl.col(metric).mean())


def _repeat_means(requests: pl.DataFrame, metric: str, arm: Arm) -> list[float]:
    rows = requests.filter(pl.col("cell").is_in(arm.names)).drop_nulls(metric)
    return rows.group_by("cell").agg(pl.col(metric).mean())[metric].to_list()


def _largest(repeats: Iterable[list[float]]) -> float | None:
    """The largest difference between two repeats of one arm; None when nothing was repeated."""
    spreads = [max(values) - min(values) for values in repeats if len(values) > 1]
    return max(spreads) if spreads else None


def compare_values(values: Values, metric: str, statistic: str, base: Arm, other: Arm) -> Difference:
    """The difference in a metric that has one value a run, such as throughput: it has no interval."""
    repeats = [values.repeats(arm, metric, statistic) for arm in (base, other)]
    base_mean, other_mean = (values.value(arm, metric, statistic) for arm in (base, other))
    return Difference(
        metric,
        base,
        other,
        pairs=min(len(found) for found in repeats),
        base_mean=base_mean,
        difference=None if base_mean is None or other_mean is None else other_mean - base_mean,
        low=None,
        high=None,
        noise=_largest(repeats),
        advantage=advantage(values, base, other),
    )

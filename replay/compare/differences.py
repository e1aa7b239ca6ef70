"""Whether a difference between two runs is seen, for one figure of one cell, by the rule of the report's claims.

Both runs replayed the same requests, so they are held against each other request by request, blocks of neighbours at
a time. Means go by the report's own comparison; percentiles by the same draws. A figure that is one number a run has
no requests to draw from: then only repeats can tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.compare.figures import Figure
from replay.compare.matching import Place
from replay.compare.sides import Figures
from replay.metrics.arms import Arm
from replay.metrics.paired import CONFIDENCE, RESAMPLES, Difference, compare

Verdict = Literal["seen", "not seen", "cannot be told"]
BEYOND = 5
"""Requests that must lie beyond a percentile: with fewer, one slow request is the figure."""
DRAWN = 20_000_000
"""Values drawn for one interval of a percentile, about; of a long trace there are fewer resamples."""
FEWEST = 400
AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Sight:
    """A verdict; why it could not be told; the interval of the paired difference and the requests that it rests on."""

    verdict: Verdict
    why: str | None = None
    low: float | None = None
    high: float | None = None
    pairs: int | None = None

    @property
    def mark(self) -> str:
        return {"seen": "*", "not seen": "", "cannot be told": "?"}[self.verdict]


def sight(figure: Figure, figures: Figures, base: Place, other: Place, seed: int) -> Sight:
    """Whether `other` may be said to differ from `base`."""
    if base.arm is None or other.arm is None or base.doubt or other.doubt:
        return Sight("cannot be told", "a cell is invalid, partial or missing")
    ends = [figures.values.value(arm, figure.metric, figure.statistic) for arm in (base.arm, other.arm)]
    if ends[0] is None or ends[1] is None:
        return Sight("cannot be told", "it is not defined")
    repeats = [figures.values.repeats(arm, figure.metric, figure.statistic) for arm in (base.arm, other.arm)]
    spreads = [max(values) - min(values) for values in repeats if len(values) > 1]
    noise = max(spreads, default=None)
    by_request = "good" if figure.metric == "goodput" else figure.metric
    if by_request == "good" or (figure.statistic == "mean" and by_request in figures.requests.columns):
        paired = compare(figures.requests, figures.values, by_request, base.arm, other.arm, seed)
        return _decided(figure, paired.difference or 0.0, ends[0], noise, paired.low, paired.high, paired.pairs)
    if repeats[0] == repeats[1]:
        return Sight("not seen")
    if figure.percent is not None and figure.metric in figures.requests.columns:
        return _of_percentile(figure, figures.requests, base.arm, other.arm, (ends[0], ends[1]), noise, seed)
    return _decided(figure, ends[1] - ends[0], ends[0], noise, None, None, None)


def _decided(
    figure: Figure,
    difference: float,
    base: float,
    noise: float | None,
    low: float | None,
    high: float | None,
    pairs: int | None,
) -> Sight:
    """By the interval, if there is one, and by how far repeats lie apart."""
    if difference == 0:
        return Sight("not seen", None, low, high, pairs)
    if low is None and noise is None:
        why = "too few requests" if pairs is not None else "it is one number a run, and the runs were not repeated"
        return Sight("cannot be told", why, pairs=pairs)
    known = Arm("", "", "", "", ())
    claim = Difference(figure.name, known, known, pairs or 0, base, difference, low, high, noise)
    return Sight("seen" if claim.apparent else "not seen", None, low, high, pairs)


def _of_percentile(
    figure: Figure,
    requests: pl.DataFrame,
    base: Arm,
    other: Arm,
    ends: tuple[float, float],
    noise: float | None,
    seed: int,
) -> Sight:
    share = (figure.percent or 0.0) / 100
    columns = _alike(requests, figure.metric, base, other)
    pairs = columns.height
    if round(pairs * min(share, 1 - share), 6) < BEYOND:
        return Sight("cannot be told", f"fewer than {BEYOND} requests lie beyond it", pairs=pairs)
    values = columns.select(pl.exclude("row", "arrival")).to_numpy().T
    count = len(base.cells)
    low, high = interval(values[:count], values[count:], share, seed)
    return _decided(figure, ends[1] - ends[0], ends[0], noise, low, high, pairs)


def _alike(requests: pl.DataFrame, metric: str, base: Arm, other: Arm) -> pl.DataFrame:
    """The requests that have the metric in every repeat of both, in order of arrival: a column a repeat."""
    tables = [
        requests.filter(cell=name).drop_nulls(metric).select("row", "arrival", pl.col(metric).alias(name))
        for name in (*base.names, *other.names)
    ]
    joined = reduce(lambda table, more: table.join(more.drop("arrival"), on="row"), tables)
    return joined.sort("arrival", "row")


def interval(base: NDArray[np.float64], other: NDArray[np.float64], share: float, seed: int) -> tuple[float, float]:
    """The bootstrap interval of the difference in a percentile; a row a repeat, requests in order of arrival.

    Circular blocks of consecutive requests are drawn, the same for both.
    """
    n = base.shape[1]
    length = math.ceil(math.sqrt(n))
    resamples = min(RESAMPLES, max(FEWEST, DRAWN // n))
    starts = np.random.default_rng(seed).integers(0, n, size=(resamples, math.ceil(n / length)))
    found = []
    for part in np.array_split(starts, math.ceil(resamples * n / AT_ONCE)):
        drawn = ((part[:, :, None] + np.arange(length)) % n).reshape(len(part), -1)
        means = [
            np.mean([np.quantile(values[drawn], share, axis=1, method="linear") for values in side], axis=0)
            for side in (base, other)
        ]
        found.append(means[1] - means[0])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.concatenate(found), [tail, 1 - tail], method="linear")
    return round(float(low), 12), round(float(high), 12)

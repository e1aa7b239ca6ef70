"""When requests come: how many windows of constant rate a trace needs, and how its gaps are spread within them.

It knows instants, not what is asked for at them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from replay.clock import NANOSECONDS
from replay.traces.fitting.distances import Numbers, Wholes

Family = Literal["gamma", "weibull"]
FEWEST = 25  # requests in a window, on average: with fewer, a rate strays by more than 20 % by chance
MOST_WINDOWS = 128
BEYOND_CHANCE = 2.33  # of the normal distribution: 1 %
BY_CHANCE = 1.63  # of 1 / sqrt(n): a distance from the right distribution that chance exceeds once in a hundred
AT_ONCE = 0.05  # of the gaps: with more that are 0, no likelihood means anything
LEAST_GAP = 1e-6  # of the mean: a gap of 0 has no logarithm
FAR = 600.0  # behind it, the gamma distribution of gaps is at its end
LEAST_BURSTINESS, MOST_BURSTINESS = 0.05, 10.0  # what a specification takes
TICK, MILLISECOND = 1_000, 1_000_000  # nanoseconds; nothing is drawn finer than a tick


@dataclass(frozen=True, slots=True)
class Gaps:
    """The spread of gaps: a family, and the coefficient of variation."""

    family: Family
    burstiness: float

    @property
    def poisson(self) -> bool:
        """As if nobody knew of the others."""
        return self.burstiness == 1


def most_windows(requests: int) -> int:
    """The largest power of two of windows that leaves `FEWEST` requests in each, on average."""
    return 1 << int(math.log2(max(1, min(MOST_WINDOWS, requests // FEWEST))))


def window_edges(span: int, windows: int) -> Wholes:
    """Where so many equal windows begin and end, in nanoseconds; the last is shorter by what is rounded."""
    unit = MILLISECOND if span // windows >= NANOSECONDS else TICK
    width = -(-span // (windows * unit)) * unit
    return np.unique(np.minimum(np.arange(windows + 1, dtype=np.int64) * width, span))


def counts_in(instants: Wholes, edges: Wholes) -> Wholes:
    """How many instants lie in each window; one at the very end lies in the last."""
    place = np.minimum(np.searchsorted(edges, instants, "right") - 1, len(edges) - 2)
    return np.bincount(place, minlength=len(edges) - 1).astype(np.int64)


def windows_needed(counts: Numbers, dispersion: float) -> int:
    """The fewest equal windows (1, 2, 4, ...) within which the rate is not seen to change; `counts` are in the most.

    The halves of each window are compared: sum of (a - b)^2 / (a + b) over the windows is chi-squared where rates are
    constant, once divided by `dispersion`, the square of the burstiness. A number of windows will do when neither it
    nor any larger one is rejected at 1 %.
    """
    while len(counts) > 1 and not halves_differ(counts, dispersion):
        counts = counts.reshape(-1, 2).sum(axis=1)
    return len(counts)


def halves_differ(counts: Numbers, dispersion: float) -> bool:
    """Whether neighbours, two by two, differ by more than chance; Wilson and Hilferty's cube root makes it normal."""
    left, right = counts[0::2], counts[1::2]
    both = (left + right)[left + right > 0]
    if not len(both):
        return False
    squared = float((((left - right) ** 2)[left + right > 0] / both).sum()) / dispersion
    freedom = len(both)
    off = 2 / (9 * freedom)
    return bool(((squared / freedom) ** (1 / 3) - (1 - off)) / math.sqrt(off) > BEYOND_CHANCE)


def unit_gaps(instants: Wholes, edges: Wholes, counts: Numbers) -> Numbers:
    """Gaps in requests to be expected, at the rate that each window's count makes: of mean 1 where that is right."""
    expected = np.concatenate([[0.0], np.cumsum(counts)])
    return np.diff(np.interp(instants.astype(np.float64), edges.astype(np.float64), expected))


def gap_variation(gaps: Numbers) -> float:
    """Standard deviation by mean (population); 1 where nothing can be said."""
    mean = float(gaps.mean()) if len(gaps) > 1 else 0.0
    return float(gaps.std()) / mean if mean else 1.0


def fit_gaps(gaps: Numbers) -> Gaps:
    """The family, at its likeliest or with the variation as measured, whose distribution function is nearest.

    Poisson, unless the distance of that (Kolmogorov-Smirnov) is one that chance exceeds once in a hundred. Where many
    gaps are 0 no family is near: gamma then, as bursty as measured, for that is what makes queues.
    """
    if len(gaps) < 2 or not gaps.mean():
        return Gaps("gamma", 1.0)
    if (gaps <= 0).mean() > AT_ONCE:
        return Gaps("gamma", _bounded(gap_variation(gaps)))
    unit = np.sort(gaps / gaps.mean())
    if cdf_distance(unit, 1 - np.exp(-unit)) <= BY_CHANCE / math.sqrt(len(unit)):
        return Gaps("gamma", 1.0)
    least = np.maximum(unit, LEAST_GAP)
    logs = np.log(least)
    shape = weibull_shape(least, logs)
    tried = [Gaps("gamma", 1 / math.sqrt(gamma_shape(least, logs))), Gaps("gamma", gap_variation(unit))]
    tried = [Gaps(each.family, _bounded(each.burstiness)) for each in tried]
    away = [cdf_distance(unit, gamma_cdf(1 / each.burstiness**2, unit)) for each in tried]
    tried += [Gaps("weibull", _bounded(weibull_variation(shape))), Gaps("gamma", 1.0)]
    away += [cdf_distance(unit, weibull_cdf(shape, unit)), cdf_distance(unit, 1 - np.exp(-unit))]
    return tried[int(np.argmin(away))]


def cdf_distance(ordered: Numbers, expected: Numbers) -> float:
    """sup |F - G|: F of these values, G what is expected at each, looked at before and behind every step of F."""
    size = len(ordered)
    upto = np.searchsorted(ordered, ordered, "right") / size
    below = np.searchsorted(ordered, ordered, "left") / size
    return float(max(np.abs(upto - expected).max(), np.abs(below - expected).max()))


def _bounded(variation: float) -> float:
    return float(f"{min(max(variation, LEAST_BURSTINESS), MOST_BURSTINESS):.3g}")


def gamma_shape(unit: Numbers, logs: Numbers) -> float:
    """The likeliest, to 1.5 % (Minka, 2002): a closed form of log mean - mean log."""
    apart = max(math.log(float(unit.mean())) - float(logs.mean()), 1e-9)
    return (3 - apart + math.sqrt((apart - 3) ** 2 + 24 * apart)) / (12 * apart)


def gamma_cdf(shape: float, unit: Numbers) -> Numbers:
    """For gaps of mean 1: the series x^k e^-x (1 / G(k+1) + x / G(k+2) + ...), G the gamma function, x = k * gap."""
    scaled = np.minimum(shape * unit, FAR)
    term = np.exp(shape * np.log(np.maximum(scaled, 1e-300)) - scaled - math.lgamma(shape + 1))
    total, step = term.copy(), shape
    while float(term.max()) > 1e-9 or step < FAR:
        step += 1
        term = term * scaled / step
        total += term
    return np.minimum(total, 1.0)


def weibull_shape(unit: Numbers, logs: Numbers) -> float:
    """The likeliest: where sum(x^k log x) / sum(x^k) - 1/k = mean log, found by halving."""
    low, high = 0.1, 20.0
    for _ in range(50):
        shape = math.sqrt(low * high)
        powers = unit**shape
        if float((powers * logs).sum() / powers.sum()) - 1 / shape < float(logs.mean()):
            low = shape
        else:
            high = shape
    return math.sqrt(low * high)


def weibull_cdf(shape: float, unit: Numbers) -> Numbers:
    """For gaps of mean 1."""
    powers: Numbers = (unit * math.gamma(1 + 1 / shape)) ** shape
    return -np.expm1(-powers)


def weibull_variation(shape: float) -> float:
    """Standard deviation by mean: sqrt(Gamma(1 + 2/k) / Gamma(1 + 1/k)^2 - 1)."""
    return math.sqrt(math.exp(math.lgamma(1 + 2 / shape) - 2 * math.lgamma(1 + 1 / shape)) - 1)

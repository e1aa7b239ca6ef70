"""Intervals that hold all at once: how wide those of a table of comparisons must be so that, of a hundred tables, five
hold a false claim.

The width is the largest |t| of any comparison in all but five of a hundred draws (P. H. Westfall, S. S. Young, 1993;
J. P. Romano, M. Wolf, 2005). All comparisons share the draws, so those that rise and fall together cost little, where
Bonferroni's rule takes them for strangers. It knows no metric and no arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from replay.metrics.resampling import RESAMPLES, Counts, Draws, Errors, Floats

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class RunNoise:
    """How far the means of arms stray from run to run: the variance of each arm's mean over its repeats, and the
    degrees of freedom of it; NaN and 0 where nothing says it. `base` and `other` are the arms of each comparison."""

    variance: Floats
    freedom: Floats
    base: Counts
    other: Counts

    @property
    def known(self) -> Floats:
        """The variance of each comparison's difference, 0 where nobody knows it."""
        both: Floats = np.nan_to_num(self.variance[self.base]) + np.nan_to_num(self.variance[self.other])
        return both


@dataclass(frozen=True, slots=True)
class Widths:
    """Half of each interval, alone and in its family; NaN where there is none."""

    own: Floats
    family: Floats


def widths(errors: Errors, draws: Draws, noise: RunNoise, seed: int, chance: float = 1 - CONFIDENCE) -> Widths:
    """Half of the interval of each comparison: alone, and such that all of them hold with 1 - `chance`.

    To what the requests leave open is added what runs differ by. Two or three repeats cannot be drawn from - resampled,
    they understate the variance by (R - 1) / R and give four values - so an arm's mean is drawn as normal with the
    unbiased variance, and the interval pays for its few degrees of freedom (B. L. Welch, 1947).
    """
    within, between = errors.error**2, noise.known
    total = np.sqrt(within + between)
    present = (errors.freedom > 0) & (total > 0)
    scale = np.where(total > 0, total, 1.0)
    strayed = draws * (errors.error / scale).astype(np.float32)
    if between.any():
        random = np.random.default_rng([seed, 2]).standard_normal((RESAMPLES, len(noise.variance)))
        each = random * np.sqrt(np.nan_to_num(noise.variance))
        strayed = strayed + ((each[:, noise.other] - each[:, noise.base]) / scale).astype(np.float32)
    strayed = np.abs(strayed[:, present])
    freedom = _freedom(errors, noise)[present]
    own, family = np.full(len(total), np.nan), np.full(len(total), np.nan)
    own[errors.freedom > 0] = family[errors.freedom > 0] = 0.0
    if present.any():
        own[present] = total[present] * widened(_quantile(strayed, chance), freedom)
        family[present] = total[present] * widened(_quantile(strayed.max(axis=1), chance), freedom)
    return Widths(own, family)


def _quantile(strayed: Draws, chance: float) -> Floats:
    """What all but `chance` of the draws stay below; never less than a normal's, and without the last digits, which
    depend on the order of sums."""
    least = NormalDist().inv_cdf(1 - chance / 2)
    found: Floats = np.maximum(np.quantile(strayed.astype(np.float64), 1 - chance, axis=0).round(4), least)
    return found


def _freedom(errors: Errors, noise: RunNoise) -> Floats:
    """Of the sum of the variances, each with its own degrees of freedom (F. E. Satterthwaite, 1946)."""
    found = _term(errors.error**2, errors.freedom)
    for arm in (noise.base, noise.other):
        found = found + _term(np.nan_to_num(noise.variance[arm]), noise.freedom[arm])
    total = errors.error**2 + noise.known
    freedom: Floats = np.maximum(1.0, total**2 / np.where(found > 0, found, 1.0))
    return freedom


def _term(variance: Floats, freedom: Floats) -> Floats:
    return variance**2 / np.maximum(freedom, 1e-9)


def widened(z: Floats | float, freedom: Floats) -> Floats:
    """Student's t that is as rare as a normal's `z` (D. L. Wallace, 1959): within 1 % from three degrees of freedom on,
    and on the safe side."""
    t: Floats = np.sqrt(freedom * np.expm1((z * (8 * freedom + 3) / (8 * freedom + 1)) ** 2 / freedom))
    return t

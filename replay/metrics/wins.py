"""Win shares: for how many of the requests one arm did better than another, for how many worse, and for how many alike.

A mean may be carried by a few requests that wait very long; the win share says how many gained and how many paid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from replay.metrics.resampling import Floats, Mask, Users, sample, user_errors
from replay.metrics.slow_waves import wave_errors

TOLERANCE = 0.01
"""Share of the larger value up to which two measured ones are alike: nobody feels it, and a machine is no more even."""
EXACTLY = 1e-9
"""Seconds up to which values of a virtual clock are: it holds whole nanoseconds."""
NORMAL = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Wins:
    """Shares of the paired requests, which add up to 1. `low` and `high` bound `better` (95 %, of this share alone);
    None: too few requests. `tolerance` is the relative difference up to which two are alike."""

    better: float
    worse: float
    alike: float
    low: float | None
    high: float | None
    tolerance: float


def wins(
    base: Floats, other: Floats, rises: Sequence[bool], exact: Sequence[bool], users: Users | None, grown: Mask
) -> list[Wins]:
    """Of each column of values, which is NaN in both or in neither. `rises`: more is better; `exact`: of a virtual
    clock, where there is no noise to allow for; `grown`: the queue grew all along."""
    sign = np.where(np.array(rises), 1.0, -1.0)
    tolerance = np.where(np.array(exact), 0.0, TOLERANCE)
    gain, allowed = sign * (other - base), np.maximum(tolerance * np.maximum(np.abs(base), np.abs(other)), EXACTLY)
    present = ~np.isnan(gain)
    better = np.where(present, (gain > allowed).astype(float), np.nan)
    worse = (gain < -allowed).sum(axis=0)
    found = sample(better)
    waves = wave_errors(found, grown)
    error, freedom = waves.error, waves.freedom
    if users is not None:
        over = user_errors(found, users)
        wider = (over.freedom > 0) & (over.error > error)
        error, freedom = np.where(wider, over.error, error), np.where(wider, over.freedom, freedom)
    told = []
    for place, pairs in enumerate(found.pairs):
        share, lost = float(found.means[place]), float(worse[place] / max(pairs, 1))
        ends = _bounds(share, int(pairs), float(error[place]), float(freedom[place]))
        alike = max(0.0, round(1 - share - lost, 12))
        told.append(Wins(round(share, 12), round(lost, 12), alike, *ends, tolerance=float(tolerance[place])))
    return told


def _bounds(share: float, pairs: int, error: float, freedom: float) -> tuple[float | None, float | None]:
    """Wilson's interval of a share (E. B. Wilson, 1927) for as many independent requests as have this standard error
    (E. L. Korn, B. I. Graubard, 1998): within 0 and 1, and not a point where all did better."""
    if freedom <= 0:
        return None, None
    independent = min(pairs, share * (1 - share) / error**2 if error > 0 else freedom + 1)
    z = NORMAL**2 / independent
    middle, half = (share + z / 2) / (1 + z), math.sqrt(z * (share * (1 - share) + z / 4)) / (1 + z)
    return round(max(0.0, middle - half), 12), round(min(1.0, middle + half), 12)

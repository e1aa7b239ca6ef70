"""From measured steps to a cost model: the four constants that explain their seconds best, none below zero.

It knows nothing of what computed the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from replay.executors.interface import CostModel


@dataclass(slots=True, frozen=True)
class Measurement:
    """One step: what it computed (prefill tokens, decoding requests, tokens of context read) and its seconds."""

    prefill: int
    decodes: int
    context: int
    seconds: float


def fit_cost(measurements: Sequence[Measurement]) -> CostModel:
    """The non-negative least-squares fit of `fixed + prefill * p + decode * d + context * c` to the measured seconds.

    Errors are relative, so that a short step counts as much as a long one. With four unknowns the exact answer is the
    best among the unconstrained fits of all subsets of columns whose coefficients are all non-negative (the optimality
    conditions in Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23). Raises ValueError without a
    measurement, or when one took no time.
    """
    if not measurements:
        raise ValueError("a cost model cannot be fitted to no measurement")
    seconds = np.array([step.seconds for step in measurements])
    if (seconds <= 0).any():
        raise ValueError("a measured step took no time; only positive seconds can be fitted")
    columns = np.array([[1.0, step.prefill, step.decodes, step.context] for step in measurements])
    fixed, prefill, decode, context = (float(value) for value in _non_negative(columns / seconds[:, None]))
    return CostModel(fixed, prefill, decode, context)


def _non_negative(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The x >= 0 that brings `columns @ x` closest to 1, by trying every subset of columns."""
    best, best_error = np.zeros(columns.shape[1]), float(len(columns))
    for size in range(1, columns.shape[1] + 1):
        for subset in map(list, combinations(range(columns.shape[1]), size)):
            scale = np.abs(columns[:, subset]).max(axis=0)
            scale[scale == 0] = 1.0
            solution = np.linalg.lstsq(columns[:, subset] / scale, np.ones(len(columns)), rcond=None)[0] / scale
            error = float(np.sum((columns[:, subset] @ solution - 1.0) ** 2))
            if (solution >= 0).all() and error < best_error - 1e-12:
                best, best_error = np.zeros(columns.shape[1]), error
                best[subset] = solution
    return best

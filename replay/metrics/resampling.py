"""How surely means of differences are known: standard errors over blocks of neighbours and over users, and draws that
say how far several such means stray together.

Columns are comparisons, rows the requests of a trace in order of arrival; NaN stands where a request is not in both
arms, and weighs nothing. What is drawn is drawn once for all columns, so that what they share - a base, a queue, a
user - they share in every draw. It knows no metric and no arm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draws = NDArray[np.float32]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

RESAMPLES = 2000
FEWEST_PAIRS = 5
"""Requests below which there is no interval: blocks of them would all hold the same."""
FEWEST_USERS = 10
"""Users below which nothing is drawn by user."""
EVEN_USERS = 5.0
"""Users of equal size that unequal ones must count for: else a few of them are the whole of it."""
EXACT = 1e-12
"""Share of the largest value up to which differences are equal: floats tell no less apart."""
GROUPS = 1000
"""More users than these are drawn in so many groups of users."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Columns of differences: the mean of each, the values in it, and how much each value moves the mean, which is
    (value - mean) / n and 0 where there is none. A column of equal values moves nothing at all."""

    means: Floats
    pairs: Counts
    parts: Floats
    present: Mask


@dataclass(frozen=True, slots=True)
class Errors:
    """Of each column the standard error of its mean, and the degrees of freedom that it rests on; 0: it has none."""

    error: Floats
    freedom: Floats


@dataclass(frozen=True, slots=True)
class Users:
    """The rows user by user: `order` sorts rows by user, `first` is where each one's begin in it, and `named` whether
    the trace names the user. A request of nobody is a user of its own."""

    order: Counts
    first: Counts
    named: Mask

    def sums(self, values: Floats) -> Floats:
        """The sums of each column over the rows of each user: a row a user."""
        found: Floats = np.add.reduceat(values[self.order], self.first, axis=0)
        return found


def by_user(of_row: Counts, named: Mask) -> Users | None:
    """Users of rows, numbered from 0; None where too few are `named` to draw from."""
    if int(named.sum()) < FEWEST_USERS:
        return None
    order = np.argsort(of_row, kind="stable")
    return Users(order, np.flatnonzero(np.diff(of_row[order], prepend=-1)), named)


def sample(differences: Floats) -> Sample:
    """Differences as columns; NaN where there is none."""
    present = ~np.isnan(differences)
    pairs = present.sum(axis=0)
    means = np.where(present, differences, 0.0).sum(axis=0) / np.maximum(pairs, 1)
    parts = np.where(present, differences - means, 0.0) / np.maximum(pairs, 1)
    lowest = np.where(present, differences, np.inf).min(axis=0, initial=np.inf)
    highest = np.where(present, differences, -np.inf).max(axis=0, initial=-np.inf)
    equal = (pairs > 0) & (highest - lowest <= EXACT * np.maximum(np.abs(lowest), np.abs(highest)))
    parts[:, equal] = 0.0
    return Sample(np.where(equal, lowest, means), pairs, parts, present)


def level(found: Sample) -> Floats:
    """The parts of each column without their straight trend along the rows."""
    place = np.arange(len(found.parts), dtype=np.float64)[:, None]
    centre = (place * found.present).sum(axis=0) / np.maximum(found.pairs, 1)
    away = np.where(found.present, place - centre, 0.0)
    extent = (away**2).sum(axis=0)
    slope = (away * found.parts).sum(axis=0) / np.where(extent > 0, extent, 1.0)
    levelled: Floats = found.parts - slope * away
    return levelled


def drawn_length(n: int) -> int:
    """Requests of a block that is drawn: the same for all columns."""
    return max(1, math.ceil(math.sqrt(n)))


def block_starts(n: int, seed: int) -> Counts:
    """Where the blocks of each draw begin: a row a draw, of at least `n` requests."""
    blocks = math.ceil(n / drawn_length(n))
    return np.random.default_rng([seed, 0]).integers(0, max(n, 1), size=(RESAMPLES, blocks))


def block_draws(found: Sample, starts: Counts) -> Draws:
    """How far the mean of each column strays in each draw of blocks, in standard errors of the draws: a row a draw."""
    n, columns = found.parts.shape
    length, parts = drawn_length(n), level(found)
    ring = np.cumsum(np.concatenate([np.zeros((1, columns)), parts, parts[: length - 1]]), axis=0)
    sums = ring[length:] - ring[:-length]  # of the block that starts at each request
    total = np.zeros((len(starts), columns))
    for block in starts.T:
        total += sums[block]
    return _in_errors(total, np.sqrt(starts.shape[1] / max(n, 1) * (sums**2).sum(axis=0)), found.parts)


def user_errors(found: Sample, users: Users) -> Errors:
    """Over users, each with all of its requests (A. C. Cameron, J. B. Gelbach, D. L. Miller, 2008).

    The variance is the jackknife's, which leaves out one user at a time: where users are of unequal size it is not too
    small, as that of draws is (J. G. MacKinnon, M. Ø. Nielsen, M. D. Webb, 2023). Its degrees of freedom are those of
    as many users of equal size (A. V. Carter, K. T. Schnepel, D. G. Steigerwald, 2017), of which the mean takes one.
    """
    sums, counts = users.sums(found.parts), users.sums(found.present.astype(np.float64))
    shares, there = counts / np.maximum(found.pairs, 1), (counts > 0).sum(axis=0)
    left_out = sums / np.maximum(1 - shares, 1e-9)
    variance = (there - 1) / np.maximum(there, 1) * (left_out**2).sum(axis=0)
    even = 1 / np.maximum((shares**2).sum(axis=0), 1e-300)
    enough = ((counts > 0)[users.named].sum(axis=0) >= FEWEST_USERS) & (even >= EVEN_USERS)
    return Errors(np.sqrt(np.maximum(variance, 0.0)), np.where(enough, even - 1, 0.0))


def user_and_block_errors(found: Sample, users: Users, blocks: Errors) -> Errors:
    """Over users whose requests also share a queue with their neighbours: the variance of both, less that of
    independent requests, which is in each (A. C. Cameron, J. B. Gelbach, D. L. Miller, 2011)."""
    own = user_errors(found, users)
    alone = (found.parts**2).sum(axis=0)
    both = np.maximum(own.error**2 + blocks.error**2 - alone, np.maximum(own.error, blocks.error) ** 2)
    freedom = np.where(blocks.freedom > 0, np.minimum(own.freedom, blocks.freedom), 0.0)
    return Errors(np.sqrt(both), freedom)


def user_times(users: Users, seed: int) -> tuple[Counts, Floats]:
    """The group of each user, and how often each draw has each group: a row a draw."""
    random = np.random.default_rng([seed, 1])
    many = len(users.first)
    groups = min(many, GROUPS)
    group = random.permutation(many) % groups
    drawn = random.integers(0, groups, size=(RESAMPLES, groups)) + groups * np.arange(RESAMPLES)[:, None]
    times = np.bincount(drawn.ravel(), minlength=RESAMPLES * groups).reshape(RESAMPLES, groups)
    return group, times.astype(np.float64)


def user_draws(found: Sample, users: Users, group: Counts, times: Floats) -> Draws:
    """How far the mean of each column strays in each draw of users, in standard errors of the draws."""
    sums = np.zeros((times.shape[1], found.parts.shape[1]))
    np.add.at(sums, group, users.sums(found.parts))
    return _in_errors(times @ sums, np.sqrt((sums**2).sum(axis=0)), found.parts)


def _in_errors(strayed: Floats, errors: Floats, parts: Floats) -> Draws:
    """In standard errors; 0 where that is none but for rounding."""
    none = errors <= EXACT * np.abs(parts).max(axis=0, initial=0.0)
    scaled: Draws = np.where(none, 0.0, strayed / np.where(none, 1.0, errors)).astype(np.float32)
    return scaled

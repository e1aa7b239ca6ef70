"""Windows and gaps of a fit: what is known of a process is found in its arrivals."""

from __future__ import annotations

import numpy as np
import pytest

from replay.clock import NANOSECONDS
from replay.traces.fitting.arrivals import (
    MOST_WINDOWS,
    counts_in,
    fit_gaps,
    halves_differ,
    most_windows,
    unit_gaps,
    weibull_variation,
    window_edges,
    windows_needed,
)


def test_windows_are_equal_but_for_what_is_rounded():
    assert window_edges(10 * NANOSECONDS, 4).tolist() == [
        0,
        2_500_000_000,
        5_000_000_000,
        7_500_000_000,
        10_000_000_000,
    ]
    # a third of ten seconds is rounded up to the millisecond, so the last window is 2 ms shorter
    assert window_edges(10 * NANOSECONDS, 3).tolist() == [0, 3_334_000_000, 6_668_000_000, 10_000_000_000]
    assert window_edges(10_000, 4).tolist() == [0, 3_000, 6_000, 9_000, 10_000]


def test_an_instant_belongs_to_the_window_that_it_begins():
    assert counts_in(np.array([0, 9, 10, 10, 19, 20]), np.array([0, 10, 20])).tolist() == [2, 4]


def test_as_many_windows_as_leave_25_requests_in_each():
    assert [most_windows(requests) for requests in (1, 49, 50, 199, 10**9)] == [1, 1, 2, 4, MOST_WINDOWS]


def test_halves_differ_by_more_than_chance():
    # of one window: (120 - 80)^2 / 200 = 8, where chance exceeds 6.6 once in a hundred; with (115, 85) it is 4.5
    assert halves_differ(np.array([120.0, 80.0]), 1.0)
    assert not halves_differ(np.array([115.0, 85.0]), 1.0)
    assert not halves_differ(np.array([120.0, 80.0]), 2.0)  # bursts may do that
    assert not halves_differ(np.array([0.0, 0.0]), 1.0)


def test_a_rate_that_does_not_change_needs_one_window():
    assert windows_needed(np.full(64, 100.0), 1.0) == 1
    assert windows_needed(np.array([100.0] * 32 + [200.0] * 32), 1.0) == 2
    # the halves of the whole are equal, those of its halves are not
    assert windows_needed(np.array([100.0] * 16 + [200.0] * 32 + [100.0] * 16), 1.0) == 4
    assert windows_needed(np.array([100.0, 200.0] * 32), 1.0) == 64


def test_gaps_are_counted_in_requests_of_their_window():
    # four requests in the first 10, one in the next: a gap of 5 is two requests there, and half of one here
    edges, counts = np.array([0, 10, 20]), np.array([4.0, 1.0])
    assert unit_gaps(np.array([0, 5, 10, 15]), edges, counts).tolist() == [2, 2, 0.5]


@pytest.mark.parametrize("variation", [0.5, 2.0])
def test_the_family_that_gaps_are_from_is_found(variation):
    stream = np.random.default_rng(5)
    gamma = stream.gamma(1 / variation**2, size=20_000)
    found = fit_gaps(gamma)
    assert (found.family, found.burstiness) == ("gamma", pytest.approx(variation, rel=0.03))
    shape = {0.5: 2.1013, 2.0: 0.5427}[variation]
    assert weibull_variation(shape) == pytest.approx(variation, rel=1e-3)
    found = fit_gaps(stream.weibull(shape, size=20_000))
    assert (found.family, found.burstiness) == ("weibull", pytest.approx(variation, rel=0.03))


def test_poisson_unless_there_is_evidence():
    stream = np.random.default_rng(6)
    assert fit_gaps(stream.exponential(size=5_000)).poisson
    assert fit_gaps(np.array([1.0])).poisson


def test_requests_of_one_instant_are_bursts():
    gaps = np.array([0.0, 0.0, 0.0, 4.0] * 100)  # mean 1, variance 3
    assert fit_gaps(gaps).burstiness == pytest.approx(3**0.5, rel=0.01)

"""Distances between samples: worked examples by hand, and against a definition that takes no short cut."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.traces.fitting.distances import ks_distance, lag_one, rank_correlation, sample_of

NUMBERS = st.lists(st.integers(0, 6), min_size=1, max_size=12)


def test_equal_values_are_one_step():
    # at or below:   1     2     3     4
    # 1 2 2 3       1/4   3/4    1     1
    # 2 3 3 4        0    1/4   3/4    1     the largest difference is at 2
    assert ks_distance(sample_of(np.array([1, 2, 2, 3])), sample_of(np.array([2, 3, 3, 4]))) == 0.5
    # a spike that both have is no difference, however high: 5 5 5 9 and 5 5 5 5 5 9 differ by 5/6 - 3/4
    one, other = sample_of(np.array([5, 5, 5, 9])), sample_of(np.array([5, 5, 5, 5, 5, 9]))
    assert ks_distance(one, other) == pytest.approx(5 / 6 - 3 / 4)


def test_samples_of_different_size():
    # at or below 1, 2, 3, 10: 1/3, 2/3, 1, 1 and 0, 1/2, 1/2, 1
    assert ks_distance(sample_of(np.array([1, 2, 3])), sample_of(np.array([2, 10]))) == 0.5
    assert ks_distance(sample_of(np.array([1, 2])), sample_of(np.array([3, 4]))) == 1
    assert ks_distance(sample_of(np.array([])), sample_of(np.array([1]))) is None


@given(NUMBERS, NUMBERS)
def test_the_distance_is_the_largest_difference_at_any_value(one, other):
    def share(numbers, value):
        return sum(number <= value for number in numbers) / len(numbers)

    largest = max(abs(share(one, value) - share(other, value)) for value in range(7))
    found = ks_distance(sample_of(np.array(one)), sample_of(np.array(other)))
    assert found == pytest.approx(largest)
    assert ks_distance(sample_of(np.array(other)), sample_of(np.array(one))) == found


@given(NUMBERS, st.floats(0, 1))
def test_a_sample_has_the_statistics_of_its_numbers(numbers, share):
    found = sample_of(np.array(numbers))
    assert found.size == len(numbers)
    assert found.mean() == pytest.approx(np.mean(numbers))
    assert found.quantile(share) == pytest.approx(np.quantile(numbers, share))


def test_ranks_that_are_equal_share_their_mean():
    # ranks 1, 2.5, 2.5, 4 with 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5
    assert rank_correlation(np.array([10, 20, 20, 90]), np.array([1, 2, 3, 4])) == pytest.approx(4.5 / math.sqrt(22.5))
    assert rank_correlation(np.array([1, 2, 3]), np.array([9, 8, 7])) == pytest.approx(-1)
    assert rank_correlation(np.array([1, 1, 1]), np.array([1, 2, 3])) is None


def test_counts_that_go_up_and_down_by_turns():
    assert lag_one(np.array([1, 3, 1, 3, 1])) == pytest.approx(-1)
    assert lag_one(np.array([2, 2, 2])) is None

"""Gaps between arrivals: counted by hand, and exact at the longest of each bin."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from drawn_traces import figure_of, picture, title, trace_of
from hypothesis import given
from hypothesis import strategies as st

from replay.plots.traces.bins import bin_of, edges_of
from replay.plots.traces.pictures.gaps import gaps


def test_five_gaps_by_hand() -> None:
    """Gaps of 0, 0, 1, 1 and 3 s: mean 1, variance (1 + 1 + 0 + 0 + 4) / 5."""
    found = gaps(trace_of([0, 0, 0, 1, 2, 5]).rows)
    assert found is not None
    assert (found.count, found.zero, found.mean) == (5, 2, 1e9)
    assert found.cv == pytest.approx(1.2**0.5)
    assert found.up_to.tolist() == [4, 5]
    assert found.lengths.tolist() == [1e9, 3e9]


@given(st.lists(st.integers(0, 10**16), min_size=1, max_size=40).filter(any))
def test_the_shares_are_exact_at_each_length(between: list[int]) -> None:
    found = gaps(pl.LazyFrame({"arrival": np.cumsum([0, *between])}))
    assert found is not None
    expected = [sum(gap <= length for gap in between) for length in found.lengths]
    assert found.up_to.tolist() == expected
    assert found.lengths[-1] == max(between)


@given(st.lists(st.integers(1, 10**10), min_size=1, max_size=30), st.sampled_from([1, 16, 60]))
def test_a_number_lies_between_the_edges_of_its_bin(numbers: list[int], per_decade: int) -> None:
    numbers += [1, 9, 10, 99, 100, 999, 1000, 10**9 - 1, 10**9]
    for number, place in zip(
        numbers, pl.DataFrame({"n": numbers}).select(bin_of(pl.col("n"), per_decade))["n"], strict=True
    ):
        low, high = edges_of(place, place, per_decade)
        assert low < number < high


def test_no_time_between_arrivals() -> None:
    assert picture("gaps", trace_of([0])) == picture("gaps", trace_of([0, 0])) == "there is no time between arrivals"


@pytest.mark.parametrize(
    ("arrivals", "words"),
    [
        ([0, 1], "1 gap between arrivals: too few to compare with Poisson"),
        (list(range(101)), "More even than Poisson: the gaps between arrivals vary less (CV 0.00, Poisson 1 ± 0.10)"),
        # 90 gaps of 0 and 10 of 10 s: mean 1, deviation 3
        (
            sorted([float(10 * place) for place in range(11)] + [0.0] * 90),
            "Burstier than Poisson: the gaps between arrivals vary 3 times as much (CV 3.00, Poisson 1 ± 0.10); "
            "90 % of them are 0",
        ),
        (
            np.cumsum([0, *(-np.log(1 - (np.arange(100) + 0.5) / 100))]).tolist(),
            "The gaps between arrivals vary as Poisson's do: CV 0.98, Poisson 1 ± 0.10",
        ),
    ],
)
def test_the_title_says_how_bursty_it_is(arrivals: list[float], words: str) -> None:
    figure = figure_of("gaps", trace_of(arrivals))
    assert title(figure) == words
    assert ("are 0: at the same instant" in figure.axes[0].get_title(loc="left")) == ("are 0" in words)

"""Lengths of prompts and answers, counted by hand and against Polars."""

from __future__ import annotations

import polars as pl
import pytest
from drawn_traces import figure_of, title, trace_of
from hypothesis import given
from hypothesis import strategies as st

from replay.plots.traces.pictures.lengths import lengths, pairs


def test_counts_and_percentiles_by_hand() -> None:
    """1, 2, 2, 4: the middle of the second and third is 2, nine tenths of the way lies 0.7 from 2 to 4."""
    found = lengths(trace_of([0, 1, 2, 3], prompt_tokens=[4, 2, 1, 2]).rows, "prompt_tokens")
    assert (found.tokens.tolist(), found.requests.tolist()) == ([1, 2, 4], [1, 2, 1])
    assert [found.percentile(percent) for percent in (0, 50, 90, 100)] == pytest.approx([1, 2, 3.4, 4])


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(0, 100))
def test_percentiles_are_those_of_the_rows(tokens: list[int], percent: int) -> None:
    found = lengths(pl.LazyFrame({"n": tokens}), "n")
    assert found.percentile(percent) == pytest.approx(pl.Series(tokens).quantile(percent / 100, "linear"))


def test_pairs_of_bins_by_hand() -> None:
    """One bin a decade, half a token off: up to 9, up to 99, up to 999."""
    made = trace_of([0, 1, 2, 3], prompt_tokens=[5, 9, 10, 500], output_tokens=[20, 99, 20, 100])
    prompts, outputs, grid = pairs(made.rows, per_decade=1)
    assert prompts.tolist() == [0.5, 9.5, 99.5, 999.5]
    assert outputs.tolist() == [9.5, 99.5, 999.5]
    assert grid.tolist() == [[2, 0], [1, 0], [0, 1]]


def test_the_title_says_the_middle_and_the_longest() -> None:
    few = trace_of([0, 1, 2], prompt_tokens=[10, 20, 900], output_tokens=[1, 2, 3])
    assert title(figure_of("lengths", few)) == (
        "Half of all prompts have up to 20 tokens and half of the answers up to 2; the longest have 900 and 3"
    )
    many = trace_of([0.0] * 101, prompt_tokens=list(range(100, 201)), output_tokens=list(range(1, 102)))
    assert title(figure_of("lengths", many)) == (
        "Half of all prompts have up to 150 tokens and half of the answers up to 51; "
        "one in a hundred has over 199 and 100"
    )
    alike = trace_of([0, 1], prompt_tokens=[64, 64], output_tokens=[8, 8])
    assert title(figure_of("lengths", alike)) == "Every prompt has 64 tokens and every answer 8"


def test_histograms_have_no_empty_bin_for_want_of_a_whole_number() -> None:
    """Ten bins a decade, half a token off: 1 to 5 have one each (edges 1.26, 2, 3.16, 3.98, 5.01, 6.31), then 6 and 7,
    8 and 9, and 10 to 12 share one (7.94, 10, 12.59)."""
    found = lengths(trace_of([0.0] * 12, prompt_tokens=list(range(1, 13))).rows, "prompt_tokens")
    counts, edges = found.histogram(10)
    assert edges.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 7.5, 9.5, 12.5]
    assert counts.tolist() == [1, 1, 1, 1, 1, 2, 2, 3]

"""Lengths as quantiles, users by Zipf's law, prefixes and kinds of requests: what was put in is found."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.traces.fitting.distances import sample_of
from replay.traces.fitting.kinds import by_prompt
from replay.traces.fitting.lengths import fit_quantiles, keeps, spaced, two_digits
from replay.traces.fitting.people import fit_zipf, groups
from replay.traces.fitting.prefixes import copies_for, fit_prefixes
from replay.traces.fitting.rows import fit_rows


def test_quantiles_by_hand():
    # 1 to 9: the quarter points lie at places 0, 2, 4, 6, 8
    assert spaced(sample_of(np.arange(1, 10)), 5) == [1, 3, 5, 7, 9]
    assert spaced(sample_of(np.array([7, 7, 7])), 5) == [7, 7]


def test_a_tail_gets_as_many_points_as_it_needs():
    even = sample_of(np.arange(1, 2_001))
    assert len(fit_quantiles(even)) == 5
    tail = sample_of(np.round(np.random.default_rng(1).lognormal(5, 1.2, size=20_000)) + 1)
    found = fit_quantiles(tail)
    assert keeps(tail, found)
    assert len(found) > 51
    assert len(fit_quantiles(tail, 21)) == 21


def test_between_two_quantiles_lie_five_requests_or_more():
    assert len(fit_quantiles(sample_of(np.arange(60) ** 3 + 1), 1001)) == 11


def test_rare_extremes_are_rounded_and_common_ones_kept():
    assert [two_digits(number) for number in (7, 99, 104, 105, 13_987, 131_072)] == [7, 99, 100, 110, 14_000, 130_000]
    rare = np.concatenate([np.full(50, 4_000), [4_097, 13_987]])
    assert fit_quantiles(sample_of(rare))[-1] == 14_000
    capped = np.concatenate([np.arange(3_000, 4_000), np.full(50, 4_096)])
    assert fit_quantiles(sample_of(capped))[-1] == 4_096


@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=300))
def test_quantiles_never_fall_and_are_lengths(lengths):
    found = fit_quantiles(sample_of(np.array(lengths)))
    assert len(found) >= 2
    assert found == sorted(found)
    assert found[0] >= 1


def test_an_exponent_is_found_again():
    shares = 1 / np.arange(1, 41) ** 1.3
    assert fit_zipf(np.round(10_000 * shares / shares.sum())) == pytest.approx(1.3, abs=0.02)
    assert fit_zipf(np.array([50.0, 50.0, 50.0])) == 0


def test_the_busiest_stand_alone_and_the_others_together():
    frame = pl.DataFrame({"who": [0] * 5 + [1] * 3 + [2] * 2 + [3] + [None]}, schema={"who": pl.UInt32()})
    frame = frame.with_columns(first=pl.lit(True))
    found = [(group.name, group.frame.height, group.copies) for group in groups(frame, 2)]
    assert found == [("user-1", 5, 1), ("user-2", 3, 1), ("others", 3, 2), ("anyone", 1, 1)]


def test_copies_from_how_many_of_them_are_met():
    # of 10 copies, 20 draws meet 10 (1 - 0.9^20) = 8.8
    assert copies_for(20, 9) == 11
    assert copies_for(20, 8) == 9
    assert copies_for(20, 1) == 1
    assert copies_for(20, 20) == 160  # eight times as many as draws: hardly one twice


def test_prefixes_are_binned_by_what_is_shared(trace_of):
    # 40 prompts of 3 blocks, of which two are one system prompt; 40 of 5, all different
    hashes = [[0, 1, 100 + row] for row in range(40)] + [
        [5 * row + place for place in range(1000, 1005)] for row in range(40)
    ]
    trace = trace_of(
        metadata={"block_size": "16"},
        arrival_ms=list(range(80)),
        prompt_tokens=[48] * 40 + [80] * 40,
        output_tokens=[1] * 80,
        prefix_hashes=hashes,
    )
    rows = fit_rows(trace.rows, 16, "global")
    assert rows.frame["seen"].to_list() == [0] + [32] * 39 + [0] * 40
    assert rows.frame["source"].to_list() == [None] + [0] * 39 + [None] * 40
    place, shared = fit_prefixes(rows, grown=False)
    assert place.to_list() == [0] * 40 + [None] * 40  # the first has the prefix, too
    assert [(prefix.name, prefix.tokens, prefix.copies) for prefix in shared] == [("prefix-1", 32, 1)]


def test_answers_that_go_with_prompts_make_bins():
    prompts = np.arange(1, 1_001)
    even = pl.DataFrame({"own": prompts, "output_tokens": prompts % 7 + 1})
    assert [part.height for part in by_prompt(even)] == [1_000]
    step = pl.DataFrame({"own": prompts, "output_tokens": np.where(prompts <= 500, prompts % 7 + 1, prompts % 7 + 50)})
    assert [(part["own"].min(), part["own"].max()) for part in by_prompt(step)] == [(1, 500), (501, 1_000)]


def test_of_a_large_trace_stretches_are_seen_and_all_is_counted(trace_of):
    trace = trace_of(arrival_ms=list(range(60_000)), output_tokens=[row // 10_000 + 1 for row in range(60_000)])
    rows = fit_rows(trace.rows, None, "global", large=20_000)
    assert rows.frame["output_tokens"].unique(maintain_order=True).to_list() == [1, 4]  # every third stretch
    edges = np.array([0, 30_000, 60_000]) * 1_000_000
    assert rows.counts(rows.frame["arrival"].to_numpy(), edges).tolist() == [30_000, 30_000]
    assert rows.counts(rows.frame["arrival"].to_numpy()[:10_000], edges).tolist() == [15_000, 15_000]


@given(
    st.lists(st.integers(1, 40) | st.integers(1_000, 300_000), min_size=10, max_size=300), st.none() | st.just(1_001)
)
def test_five_requests_lie_from_each_quantile_to_the_next_but_one(lengths, points):
    # ties put more there, never fewer; with fewer than 25 requests there are five quantiles all the same
    found = fit_quantiles(sample_of(np.array(lengths)), points)
    steps = max(1, len(found) - 1)
    assert steps == 1 or steps == 4 or len(lengths) >= 5 * steps
    for low, high in zip(found[:-2], found[2:], strict=True):
        between = sum(low <= length <= high for length in lengths)
        assert between >= min(5, len(lengths) // steps) or len(lengths) < 25

"""How unevenly work arrives: worked by hand, and as it is declared; a fit keeps it where its windows are as fine."""

from __future__ import annotations

import numpy as np
import pytest

from replay.clock import NANOSECONDS
from replay.traces.fitting.crowding import at_once, crowded_answers, dispersion, sums_in
from replay.traces.fitting.fit import Wanted, fit_trace
from replay.traces.fitting.fitted import fitted


def test_an_index_by_hand():
    # twenty windows, of 1 and 3 by turns: mean 2, variance 1
    sums = np.array([1.0, 3.0] * 10)
    assert dispersion(sums, np.ones(40)) == 0.5
    # weights 1 and 3: E[w] = 2, E[w^2] = 5
    assert dispersion(sums, np.array([1.0, 3.0])) == pytest.approx(0.5 * 2 / 5)
    assert dispersion(sums[:7], np.ones(7)) is None


def test_only_whole_windows_are_counted():
    instants = np.array([5, 5, 7, 16, 27]) * NANOSECONDS
    assert sums_in(instants, np.array([1.0, 2.0, 4.0, 8.0, 16.0]), 10).tolist() == [7.0, 8.0]
    assert at_once(instants) == 0.25


def test_answers_that_shorten_when_many_come():
    # minutes with 1 and with 2 requests by turns, whose answers have 10 and 4 tokens; the last is not whole
    minutes = [minute for minute in range(12) for _ in range(1 + minute % 2)]
    instants = (np.array(minutes) * 60 + 1) * NANOSECONDS
    output = np.array([10.0 if minute % 2 == 0 else 4.0 for minute in minutes])
    assert crowded_answers(instants, output) == pytest.approx(-1)
    assert crowded_answers(instants[:9], output[:9]) is None


def test_poisson_arrivals_of_any_lengths_have_an_index_of_one():
    draws = np.random.default_rng(3)
    instants = np.cumsum(draws.exponential(0.05, 200_000) * NANOSECONDS).astype(np.int64)
    weights = draws.lognormal(3, 1, 200_000)
    assert dispersion(sums_in(instants, weights, 1), weights) == pytest.approx(1, abs=0.05)


def test_a_fit_has_as_many_requests_as_the_trace_in_each_window(trace_of):
    draws = np.random.default_rng(8)
    gaps = np.concatenate([draws.exponential(1.0, 1_800), draws.exponential(0.25, 3_600)])
    trace = trace_of(arrival_s=np.cumsum(gaps).tolist(), prompt_tokens=[9] * 5_400, output_tokens=[5] * 5_400)
    (nobody,) = fit_trace(trace, Wanted(windows=8)).document["users"]
    assert nobody["nobody"] is True
    assert sum(phase["count"] for phase in nobody["phases"]) == 5_400
    found = fitted(trace, Wanted(windows=8))
    figures = {figure.subject: figure for figure in found.comparison.figures}
    crowded = figures["requests in windows of 60 s: index of dispersion"]
    assert crowded.trace > 5
    assert crowded.fit == pytest.approx(crowded.trace, rel=0.15)
    assert "60 s: index of dispersion" in found.text

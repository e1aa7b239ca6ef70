"""The rate of a trace: so many requests a second, or so many times as many, by hand; and what stays on record."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay.errors import ExperimentError, TraceError
from replay.traces.transforms import apply_transforms, parse_transforms


def applied(trace, *entries):
    return apply_transforms(trace, parse_transforms(entries))


def arrivals(trace) -> list[float]:
    return [at / 1e9 for at in trace.frame["arrival"].to_list()]


def test_a_factor_multiplies_the_mean_rate(trace_of):
    trace = trace_of(arrival_s=[0, 1, 4], think_time_ms=[None, 500, 0], deadline_ms=[100, 100, 100])
    twice = applied(trace, {"rate": "2x"})
    assert arrivals(twice) == [0, 0.5, 2]
    assert twice.frame["think_time_ms"].to_list() == [None, 250, 0], "or a closed loop would not come faster"
    assert twice.frame["deadline_ms"].to_list() == [100, 100, 100], "what a client allows is not the load's affair"
    assert arrivals(applied(trace, {"rate": "0.5x"})) == [0, 2, 8]
    assert arrivals(applied(trace, {"rate": " .25 x"})) == [0, 4, 16]


def test_a_number_sets_the_mean_rate(trace_of):
    trace = trace_of(arrival_s=[0, 1, 4])  # 3 requests in 4 s
    assert arrivals(applied(trace, {"rate": 3})) == [0, 0.25, 1]
    assert arrivals(applied(trace, {"rate": 0.375})) == [0, 2, 8]
    assert arrivals(applied(trace, {"rate": 3}, {"rate": 0.75})) == arrivals(trace)


def test_the_change_is_on_record(trace_of):
    (change,) = applied(trace_of(arrival_s=[0, 1, 4]), {"rate": "2x"}).changes
    assert (change.before.requests_per_second, change.after.requests_per_second) == (0.75, 1.5)
    assert change.sentence() == 'rate = "2x": span 4.000 s -> 2.000 s, requests/s 0.75 -> 1.5'


@pytest.mark.parametrize("argument", [0, -1.0, True, None, "2", "x", "0x", "-1x", "2 times", float("nan"), [2]])
def test_what_is_no_rate_is_refused(argument: object):
    with pytest.raises(ExperimentError, match='is neither requests per second above 0 nor a factor such as "2x"'):
        parse_transforms([{"rate": argument}])


@pytest.mark.parametrize("argument", [2.0, "2x"])
def test_requests_that_all_come_at_once_have_no_rate(trace_of, argument: object):
    with pytest.raises(TraceError, match="all requests arrive at once, which no rate changes"):
        applied(trace_of(arrival_s=[3, 3]), {"rate": argument})


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gaps=st.lists(st.integers(1, 10**10), min_size=1, max_size=20), wanted=st.floats(0.01, 1000))
def test_the_mean_rate_is_what_was_asked_for(trace_of, gaps: list[int], wanted: float):
    trace = trace_of(arrival_ns=[sum(gaps[:end]) for end in range(len(gaps) + 1)])
    span = len(gaps) + 1
    found = applied(trace, {"rate": wanted}).extent()
    assert found.rows == span
    assert found.span == pytest.approx(span / wanted, abs=2e-9), "to the nanosecond, in which arrivals are kept"

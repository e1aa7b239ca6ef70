"""Arrivals over time, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_traces import figure_of, picture, title, trace_of

from replay.clock import NANOSECONDS
from replay.plots.traces.pictures.rate import rates
from replay.plots.traces.times import length_text, round_width, spans_for, unit_of

MADE = trace_of([0, 0.5, 1.5, 1.5, 1.9, 3.2], prompt_tokens=[1, 2, 3, 4, 5, 6], output_tokens=[1, 1, 1, 1, 1, 9])


def test_what_arrives_in_each_second_and_the_rest_is_one_with_the_last() -> None:
    """The trace ends at 3.2 s: the fourth second would have a fifth of a second, and is one with the third."""
    found = rates(MADE.rows, MADE.span_nanoseconds, NANOSECONDS)
    assert (found.edges / NANOSECONDS).tolist() == [0, 1, 2, 3.2]
    assert found.amounts["requests"].tolist() == [2, 3, 1]
    assert found.amounts["prompt_tokens"].tolist() == [3, 12, 6]
    assert found.amounts["output_tokens"].tolist() == [2, 3, 9]
    assert found.per_second("requests") == pytest.approx([2, 3, 1 / 1.2])
    # the busiest second has half of the six requests, of 3.2 s
    assert found.busiest_share() == pytest.approx(1 / 3.2)
    assert found.busiest_share(4 / 6) == pytest.approx(1.5 / 3.2)


def test_half_a_span_at_the_end_stands_for_itself() -> None:
    found = rates(trace_of([0, 1, 2.5]).rows, 2_500_000_000, NANOSECONDS)
    assert (found.edges / NANOSECONDS).tolist() == [0, 1, 2, 2.5]
    assert found.per_second("requests").tolist() == [1, 1, 2]


def test_no_request_is_lost_in_any_span() -> None:
    for width in (1, 7, 100_000_000, NANOSECONDS, 10 * NANOSECONDS):
        if MADE.span_nanoseconds / width < 1e6:
            found = rates(MADE.rows, MADE.span_nanoseconds, width)
            assert found.amounts["requests"].sum() == 6
            assert (np.diff(found.edges) > 0).all()


@pytest.mark.parametrize(
    ("span", "most", "text"),
    [
        (1, 240, "1 ns"),
        (1_000_000, 240, "5 µs"),
        (3.5, 240, "20 ms"),
        (3502, 240, "15 s"),
        (3600 * 24, 240, "10 min"),
        (3600 * 24 * 7, 240, "1 h"),
        (3600 * 24 * 365, 240, "2 days"),
        (3600 * 24 * 200, 240, "1 day"),
        (10, 10, "1 s"),
    ],
)
def test_a_step_is_the_shortest_round_one_that_is_not_too_many(span: float, most: int, text: str) -> None:
    nanoseconds = span if isinstance(span, int) and span in (1, 1_000_000) else round(span * NANOSECONDS)
    assert length_text(round_width(int(nanoseconds), most)) == text


def test_units_and_steps_for_few_requests() -> None:
    assert [unit_of(seconds * NANOSECONDS).name for seconds in (0.002, 2, 3, 100, 200, 20_000, 300_000)] == [
        "µs",
        "ms",
        "s",
        "s",
        "min",
        "h",
        "days",
    ]
    assert [spans_for(requests) for requests in (1, 100, 1_000_000)] == [10, 20, 240]


def test_the_title_says_the_share_of_the_time_and_the_rates() -> None:
    """Ten spans of 0.5 s would be too many for 3.2 s, so that each is of 0.5 s: the busiest has 3 requests."""
    figure = figure_of("rate", MADE)
    assert title(figure) == (
        "Half of all requests come within 16 % of the time: 1.88 a second on average, 6 a second in the busiest 500 ms"
    )
    assert [axes.get_ylabel() for axes in figure.axes] == ["requests/s", "prompt tokens/s", "output tokens/s"]
    assert figure.axes[-1].get_xlabel() == "time since the first arrival, s (in steps of 500 ms)"


def test_at_one_instant_there_is_no_rate() -> None:
    assert picture("rate", trace_of([0, 0])) == "all requests arrive at one instant"

"""The little language of --fail-if: what it takes, what it says of what it does not take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.compare.expression import Amount, Bound, Check, Condition, read_check
from replay.compare.figures import SECONDS, Figure, figure_names, find_figure
from replay.errors import ExperimentError

NUMBERS = st.floats(0, 1e18, allow_nan=False) | st.integers(0, 10_000).map(float)
TEXTS = st.text(st.characters(exclude_characters="\"'", exclude_categories=["Cs"]), min_size=1)


@st.composite
def checks(draw: st.DrawFn) -> Check:
    """Any check that may be said."""
    figure = find_figure(draw(st.sampled_from(figure_names())))
    units = ["s", "ms", "us"] if figure.unit in SECONDS else ["", "%"] if figure.unit == "share" else [""]
    added = [unit for unit in units if unit != "%"]
    if draw(st.booleans()):
        amount = st.builds(Amount, NUMBERS, st.sampled_from(added))
        bound = Bound(draw(NUMBERS), draw(st.none() | amount), 1)
        bound = Bound(bound.factor, bound.amount, draw(st.sampled_from([1, -1])) if bound.amount else 1)
    else:
        bound = Bound(amount=Amount(draw(NUMBERS), draw(st.sampled_from(units))))
    seen = bound.relative and draw(st.booleans())
    names = st.sampled_from(["trace", "mode", "policy", "run", "max_running", "seen", "where"])
    conditions = draw(st.lists(st.builds(Condition, names, TEXTS | st.just("it's"), st.booleans()), max_size=3))
    return Check(figure, draw(st.sampled_from([">", ">=", "<", "<="])), bound, seen, tuple(conditions))


@given(checks())
def test_what_is_written_is_read_back(check: Check) -> None:
    assert read_check(str(check)) == check


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("ttft_p99>1.05*baseline", "ttft_p99 > 1.05 * baseline"),
        ("ttft_p99 > baseline * 1.05", "ttft_p99 > 1.05 * baseline"),
        ("ttft_p99.9 >= baseline+5ms", "ttft_p99.9 >= baseline + 5ms"),
        ("e2e_mean > 1.1 * baseline - 0.5 s", "e2e_mean > 1.1 * baseline - 0.5s"),
        ("goodput < 90 %", "goodput < 90%"),
        ("ttft_mean > baseline and seen", "ttft_mean > baseline and seen"),
        ("ttft_mean > baseline where policy = fifo and seen", "ttft_mean > baseline and seen where policy = fifo"),
        (
            "jain < .9 where trace = 'my chat' and mode != static",
            "jain < 0.9 where trace = 'my chat' and mode != static",
        ),
        ("completed < baseline where trace = chat-2.1", "completed < baseline where trace = chat-2.1"),
    ],
)
def test_a_check_may_be_written_in_several_ways(text: str, canonical: str) -> None:
    assert str(read_check(text)) == canonical


@pytest.mark.parametrize(
    ("text", "baseline", "bound"),
    [
        ("ttft_p99 > 200ms", None, 0.2),
        ("ttft_p99 > 250us", None, 0.000_25),
        ("ttft_p99 > 1.5 * baseline + 10ms", 0.2, 0.31),
        ("ttft_p99 > baseline - 10ms", 0.2, 0.19),
        ("goodput < 90%", None, 0.9),
        ("goodput < 0.9", None, 0.9),
        ("output_throughput < 0.95 * baseline", 200.0, 190.0),
        ("ttft_p99 > 2 * baseline", None, None),
    ],
)
def test_a_bound_is_in_the_units_that_values_are_kept_in(
    text: str, baseline: float | None, bound: float | None
) -> None:
    found = read_check(text).bound.value(baseline)
    assert found == (None if bound is None else pytest.approx(bound, rel=1e-12))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected the name of a figure, such as ttft_p99, found its end"),
        ("ttfp_p99 > 1s", "there is no figure 'ttfp_p99': did you mean 'ttft_p99'?"),
        ("ttft > 1s", "'ttft' has a value for each of many, so say which of its figures is meant: ttft_mean"),
        ("goodput_p99 < 1", "there is no figure 'goodput_p99'"),
        ("ttft_p98 > 1s", "there is no figure 'ttft_p98': did you mean"),
        ("ttft_p99 = 1s", "expected one of > >= < <=, found '= 1s'"),
        ("ttft_p99 >", "expected a number, or 'baseline', found its end"),
        ("ttft_p99 > 200", "ttft_p99 is a time, so a unit is needed: 200ms or 200s"),
        ("ttft_p99 > 5%", "ttft_p99 is a time"),
        ("ttft_p99 > 200m", "ttft_p99 is a time"),
        ("ttft_p99 > baseline + 5%", "not a percentage; write 1.05 * baseline"),
        ("output_throughput < 90%", "output_throughput is in tokens/s, so 90% cannot be held against it"),
        ("output_throughput < 5ms", "output_throughput is in tokens/s, so 5ms cannot"),
        ("goodput < 5ms", "goodput is a share of 1 or a percentage"),
        ("ttft_p99 > 1.05 * baselines", "expected 'baseline', found 'baselines'"),
        ("ttft_p99 > 1.05 + baseline", "ttft_p99 is a time"),
        ("ttft_p99 > 1e999s", "a number is too large"),
        ("ttft_p99 > 1s and seen", "a difference from the baseline, which this does not ask about"),
        ("ttft_p99 > baseline and policy = fifo", "expected 'seen' (conditions on cells come after 'where')"),
        ("ttft_p99 > baseline where policy", "expected = or !=, found its end"),
        ("ttft_p99 > baseline where policy = ", "expected a value, found its end"),
        ("ttft_p99 > baseline where policy = fifo or mode = static", "expected 'and' or the end, found 'or mode"),
        ("ttft_p99 > baseline; rm", "expected 'and seen', 'where' or the end, found '; rm'"),
        ("__import__('os') > 1", "there is no figure '__import__'"),
    ],
)
def test_what_is_not_a_check_is_a_sentence(text: str, told: str) -> None:
    with pytest.raises(ExperimentError) as fault:
        read_check(text)
    assert told in str(fault.value)
    assert fault.value.exit_status == 2


def test_every_figure_has_a_name_that_finds_it() -> None:
    assert [find_figure(name).name for name in figure_names()] == figure_names()
    assert find_figure("ttft_delivered_p99") == Figure("ttft_delivered", "p99")
    assert find_figure("completed") == Figure("completed", "count")
    assert len(set(figure_names())) == len(figure_names())


def test_a_figure_is_written_in_its_unit() -> None:
    told = {
        "ttft_p99": (0.2, "200 ms"),
        "normalized_latency_mean": (0.0125, "12.5 ms/token"),
        "goodput": (0.915, "91.5 %"),
        "output_throughput": (251.0, "251 tokens/s"),
        "completed": (1234.0, "1,234 requests"),
        "device_memory": (2.5e9, "2.50 GB"),
        "ttft_n": (96.0, "96"),
        "jain": (0.5, "0.50 index"),
    }
    for name, (value, text) in told.items():
        assert find_figure(name).told(value) == text, name
    assert find_figure("ttft_p99").worse(0.1) is True
    assert find_figure("goodput").worse(0.1) is False
    assert find_figure("service").worse(0.1) is None
    assert find_figure("ttft_n").worse(0.1) is None

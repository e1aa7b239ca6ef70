"""Transforms: the arithmetic of each, by hand, and what it leaves on record."""

from __future__ import annotations

import pytest

from replay.errors import ExperimentError, TraceError
from replay.traces.durations import nanoseconds
from replay.traces.table import Extent
from replay.traces.transforms import apply_transforms, parse_transforms
from replay.traces.wording import duration_text


def applied(trace, *entries):
    return apply_transforms(trace, parse_transforms(entries))


def column(trace, name) -> list:
    return trace.frame[name].to_list()


def test_limit_keeps_the_first_requests(trace_of):
    trace = trace_of(arrival_s=[0, 2, 1, 3])
    assert column(applied(trace, {"limit": 2}), "request_id") == ["0", "2"]
    assert applied(trace, {"limit": 99}).frame.equals(trace.frame)
    everything = 10**30  # more than the table's integers hold
    assert applied(trace, *({name: everything} for name in ("limit", "max_prompt", "max_output"))).frame.equals(
        trace.frame
    )


def test_window_is_half_open_and_begins_again_at_zero(trace_of):
    trace = trace_of(arrival_s=[0.0, 59.0, 60.0, 75.5, 119.0, 120.0])
    cut = applied(trace, {"window": ["1m", "2m"]})
    assert column(cut, "request_id") == ["2", "3", "4"]
    assert column(cut, "arrival") == [0, 15_500_000_000, 59_000_000_000]
    assert column(applied(trace, {"window": [59, 60.0]}), "request_id") == ["1"]
    with pytest.raises(TraceError, match=r"trace\.parquet: no request arrives from 20m to 35m; its span is 120 s"):
        applied(trace, {"window": ["20m", "35m"]})


def test_speed_divides_arrivals_and_think_times_to_the_nanosecond(trace_of):
    trace = trace_of(arrival_ns=[0, 3, 1_000_000_001], think_time_ms=[None, 500, 0], deadline_ms=[100, 100, 100])
    assert column(applied(trace, {"speed": 2.0}), "arrival") == [0, 2, 500_000_000]  # 1.5 and ...0.5 go to the even one
    assert column(applied(trace, {"speed": 0.5}), "arrival") == [0, 6, 2_000_000_002]
    assert column(applied(trace, {"speed": 2}), "think_time_ms") == [None, 250, 0]
    assert column(applied(trace, {"speed": 2}), "deadline_ms") == [100, 100, 100]
    with pytest.raises(TraceError, match="longer than 292 years"):
        applied(trace, {"speed": 1e-12})


def test_scale_tokens_keeps_one_token_at_least(trace_of):
    trace = trace_of(arrival_s=[0, 1, 2], prompt_tokens=[100, 7, 1], output_tokens=[8, 2, 1], max_tokens=[16, None, 3])
    scaled = applied(trace, {"scale_tokens": 0.25})
    assert column(scaled, "prompt_tokens") == [25, 2, 1]  # 1.75 and 0.25
    assert column(scaled, "output_tokens") == [2, 1, 1]  # 0.5 is rounded to 0
    assert column(scaled, "max_tokens") == [4, None, 1]
    assert column(applied(trace, {"scale_tokens": 3}), "output_tokens") == [24, 6, 3]
    with pytest.raises(TraceError, match="more tokens than can be counted"):
        applied(trace, {"scale_tokens": 1e18})


def test_scale_tokens_scales_the_hashes_block(trace_of):
    trace = trace_of(
        metadata={"block_size": "16"},
        arrival_s=[0, 1, 2],
        prompt_tokens=[64, 40, 17],
        prefix_hashes=[[1, 2, 3, 4], [1, 2, 9], [1, 8]],
    )
    scaled = applied(trace, {"scale_tokens": 0.25})
    assert (scaled.block_size, trace.block_size) == (4, 16)
    assert column(scaled, "prompt_tokens") == [16, 10, 4]
    assert column(scaled, "prefix_hashes") == [[1, 2, 3, 4], [1, 2, 9], [1]]  # 4 tokens are one block of 4
    assert scaled.notes == []
    with pytest.raises(TraceError, match=r"less than one token of the hashes' blocks of 16; use at least 0\.0625"):
        applied(trace, {"scale_tokens": 0.06})
    assert applied(trace, {"scale_tokens": 0.0625}).block_size == 1


def test_a_block_that_does_not_scale_to_a_whole_number_is_rounded_with_a_note(trace_of):
    trace = trace_of(metadata={"block_size": "16"}, arrival_s=[0], prompt_tokens=[64], prefix_hashes=[[1, 2, 3, 4]])
    scaled = applied(trace, {"scale_tokens": 0.1})
    assert (scaled.block_size, column(scaled, "prompt_tokens"), column(scaled, "prefix_hashes")) == (
        2,
        [6],
        [[1, 2, 3]],
    )
    assert scaled.changes[0].details == ("the hashes' block of 1.6 tokens is rounded to 2",)
    assert (trace.notes, scaled.notes, trace.changes) == ([], [], [])


def test_scale_tokens_refuses_real_prompts(trace_of):
    for content in ({"prompt": ["hello"]}, {"prompt_token_ids": [[5]]}):
        with pytest.raises(TraceError, match="scale_tokens cannot change real prompts; leave the column 'prompt"):
            applied(trace_of(arrival_s=[0], **content), {"scale_tokens": 0.5})


def test_max_prompt_cuts_hashes_and_ids_and_refuses_to_cut_text(trace_of):
    trace = trace_of(
        metadata={"block_size": "4"},
        arrival_s=[0, 1, 2],
        prompt_tokens=[9, 5, 3],
        prefix_hashes=[[1, 2, 3], [1, 7], None],
        prompt_token_ids=[list(range(9)), None, [1, 2, 3]],
        prompt=["longer, but there are ids", None, "short"],
    )
    cut = applied(trace, {"max_prompt": 5})
    assert column(cut, "prompt_tokens") == [5, 5, 3]
    assert column(cut, "prefix_hashes") == [[1, 2], [1, 7], None]  # the second block is cut within, and keeps its hash
    assert column(cut, "prompt_token_ids") == [[0, 1, 2, 3, 4], None, [1, 2, 3]]
    assert column(cut, "prompt") == [None, None, "short"]
    assert column(applied(trace, {"max_prompt": 4}), "prefix_hashes") == [[1], [1], None]
    texts = trace_of(arrival_s=[0, 1], prompt_tokens=[9, 2], prompt=["long", "short"])
    assert applied(texts, {"max_prompt": 9}).frame.equals(texts.frame)
    with pytest.raises(TraceError, match="max_prompt cannot cut text, which 1 longer prompt have"):
        applied(texts, {"max_prompt": 8})


def test_max_output_caps_answers_and_what_was_declared(trace_of):
    trace = trace_of(arrival_s=[0, 1, 2], output_tokens=[3, 9, 5], max_tokens=[4, 99, None])
    capped = applied(trace, {"max_output": 5})
    assert column(capped, "output_tokens") == [3, 5, 5]
    assert column(capped, "max_tokens") == [4, 5, None]


def test_a_cut_session_is_told(trace_of):
    trace = trace_of(arrival_s=[0, 1, 2, 3], session=["a", "b", "a", None], turn=[0, 0, 1, None])
    assert applied(trace, {"limit": 2}).changes[0].details == ("1 session goes on without some of the turns",)
    assert applied(trace, {"window": ["1s", "3s"]}).changes[0].details == (
        "1 session goes on without some of the turns",
    )
    assert applied(trace, {"limit": 3}).changes[0].details == ()


def test_what_changes_nothing_says_so(trace_of):
    assert applied(trace_of(arrival_s=[0, 1]), {"limit": 9}).changes[0].sentence() == "limit = 9: changes nothing"


def test_transforms_apply_in_order_and_leave_their_records(trace_of):
    trace = trace_of(arrival_s=[0, 10, 20, 40], prompt_tokens=[10, 20, 30, 40], output_tokens=[1, 2, 3, 4])
    changed = applied(trace, {"window": ["10s", "30s"]}, {"speed": 2.0}, {"limit": 1})
    whole, cut, fast = Extent(4, 40.0, 0.1, 100, 10), Extent(2, 10.0, 0.2, 50, 5), Extent(2, 5.0, 0.4, 50, 5)
    one = Extent(1, 0.0, None, 20, 2)
    assert [(change.before, change.after) for change in changed.changes] == [(whole, cut), (cut, fast), (fast, one)]
    assert [(change.transform, change.argument) for change in changed.changes] == [
        ("window", ["10s", "30s"]),
        ("speed", 2.0),
        ("limit", 1),
    ]
    assert changed.changes[2].sentence() == (
        "limit = 1: rows 2 -> 1, span 5.000 s -> 0.000 s, requests/s 0.4 -> none, prompt tokens 50 -> 20, "
        "output tokens 5 -> 2"
    )
    assert (trace.frame.height, trace.changes) == (4, [])


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"sped": 2.0}, "there is no transform 'sped': did you mean 'speed'?"),
        ({"speed": 0}, "speed: 0 is not a number above 0"),
        ({"speed": float("inf")}, "speed: inf is not a number above 0"),
        ({"speed": "2"}, "speed: '2' is not a number above 0"),
        ({"limit": 1.5}, "limit: 1.5 is not a whole number of at least 1"),
        ({"limit": True}, "limit: True is not a whole number of at least 1"),
        ({"max_prompt": 0}, "max_prompt: 0 is not a whole number of at least 1"),
        ({"window": "20m"}, "window: '20m' is not a pair of times"),
        ({"window": ["20m"]}, "window: ['20m'] is not a pair of times"),
        ({"window": ["20 minutes", "1h"]}, "window: '20 minutes' is not a duration; write \"20m\""),
        ({"window": ["1h", "60m"]}, "window: '1h' is not before '60m'"),
        ({"limit": 1, "speed": 2}, "is not one name with its argument"),
        ("speed", "'speed' is not one name with its argument, such as { speed = 2.0 }"),
    ],
)
def test_a_transform_that_makes_no_sense_is_refused_before_any_trace_is_read(entry, sentence):
    with pytest.raises(ExperimentError) as fault:
        parse_transforms([entry])
    assert sentence in str(fault.value)


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [
        ("20m", 1200),
        ("90s", 90),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("7us", 7e-6),
        ("3ns", 3e-9),
        ("1h30m", 5400),
        ("2d", 172_800),
        (" 2 s ", 2),
        (0.1, 0.1),
    ],
)
def test_durations_are_exact(typed, seconds):
    assert nanoseconds(typed, "here") == round(seconds * 1e9)


@pytest.mark.parametrize("typed", ["20", "m", "-5s", "1w", "1h 30", -1, float("nan"), True, None, ["1s"]])
def test_what_is_no_duration_is_refused(typed):
    with pytest.raises(ExperimentError, match=r'^here: .* is not a duration; write "20m", "90s", "1\.5h" or "250ms"'):
        nanoseconds(typed, "here")


def test_spans_are_said_exactly_with_their_unit():
    assert [duration_text(span) for span in (0, 1, 27_482_000_000, 3_501_721_937_000, 2 * 86_400 * 10**9)] == [
        "0 s",
        "0.000000001 s",
        "27.482 s",
        "3,501.721937 s (58.4 min)",
        "172,800 s (2.0 days)",
    ]

"""What `trace show` says, on traces small enough to count by hand."""

from __future__ import annotations

import json
import math

import pytest

from replay.traces.describing.describe import describe, description_text
from replay.traces.reading import read_trace


def test_rate_peak_and_burstiness_by_hand(trace_of):
    # gaps 1, 0, 1, 2 s: mean 1, variance (0 + 1 + 0 + 1) / 4
    found = describe(trace_of(arrival_s=[0, 1, 1, 2, 4]))
    assert (found["rows"], found["span_s"], found["requests_per_second"]) == (5, 4.0, 1.25)
    assert found["peak_requests_per_second"] == 2
    assert found["gap_cv"] == pytest.approx(math.sqrt(0.5))
    assert (found["gap_cv_poisson"], found["gap_cv_poisson_error"]) == (1.0, 0.5)


def test_percentiles_are_interpolated(trace_of):
    prompts = describe(trace_of(arrival_s=[0] * 4, prompt_tokens=[10, 20, 30, 40]))["prompt_tokens"]
    assert {name: prompts[name] for name in ("total", "mean", "min", "p50", "max")} == {
        "total": 100, "mean": 25, "min": 10, "p50": 25, "max": 40,
    }  # fmt: skip
    assert prompts["p99"] == pytest.approx(39.7)


def test_users_sessions_and_priorities_by_hand(trace_of):
    found = describe(
        trace_of(
            arrival_s=[0, 1, 2, 3],
            prompt_tokens=[10, 20, 30, 30],
            output_tokens=[2, 2, 2, 4],
            user=["b", "a", "b", None],
            session=["s", "s", "t", None],
            priority=[0, 2, 2, None],
        )
    )
    assert found["users"] == [
        {"user": "b", "requests": 2, "tokens": 44, "request_share": 0.5, "token_share": 0.44},
        {"user": "a", "requests": 1, "tokens": 22, "request_share": 0.25, "token_share": 0.22},
        {"user": None, "requests": 1, "tokens": 34, "request_share": 0.25, "token_share": 0.34},
    ]
    assert found["sessions"] == {
        "sessions": 2,
        "requests": 3,
        "mean": 1.5,
        "max": 2,
        "most_open": 1,
        "with_gaps": 0,
        "later_turns": 1,
        "later_turns_without_think_time": 1,
        "think_time_s": None,
        "last_due_s": 3.0,
    }
    assert found["priorities"] == {"2": 2, "0": 1}


def test_shared_prefix_tokens_by_hand(trace_of):
    hashes = {"arrival_s": [0, 1, 2], "prompt_tokens": [40, 40, 35], "prefix_hashes": [[1, 2, 3], [1, 2, 4], [1, 2, 3]]}
    found = describe(trace_of(metadata={"block_size": "16"}, session=["s", "t", "s"], **hashes))["prefixes"]
    # seen before: 16 + 16 of the second, 16 + 16 + 3 of the third, of 115 tokens; 5 of 9 blocks
    assert found["prompt_token_share_seen_before"] == pytest.approx(67 / 115)
    assert found["block_share_seen_before"] == pytest.approx(5 / 9)
    metadata = {"block_size": "16", "hash_scope": "session"}
    found = describe(trace_of(metadata=metadata, session=["s", "t", "s"], **hashes))["prefixes"]
    assert found["prompt_token_share_seen_before"] == pytest.approx(35 / 115)


def test_one_request_has_no_rate_and_no_burstiness_and_is_strict_json(trace_of):
    trace = trace_of(arrival_s=[5])
    found = describe(trace)
    assert (found["requests_per_second"], found["gap_cv"], found["span_s"]) == (None, None, 0.0)
    assert (found["sessions"], found["priorities"], found["prefixes"]) == (None, {}, None)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert "not defined" in description_text(trace)


def test_the_text_says_the_span_with_its_unit_and_everybody_by_name(trace_of):
    text = description_text(
        trace_of(arrival_ms=[0, 10_535, 27_482], user=["ada", "ada", None], output_tokens=[1, 1, 0])
    )
    assert "span          10.535 s\n" in text
    assert "skipped       1 row skipped (zero output tokens)" in text
    assert "users         1\n" in text
    assert "ada: 2 requests (100.0%), 4 tokens (100.0%)" in text
    assert "sessions      none given" in text


def test_many_users_are_counted_and_the_busiest_named(trace_of):
    text = description_text(trace_of(arrival_s=range(13), user=[f"user-{n}" for n in range(12)] + ["user-11"]))
    assert "users         12\n              user-11: 2 requests" in text
    assert "and 2 more" in text


def test_most_blocks_of_coding_sessions_recur(samples):
    trace = read_trace(samples / "weka" / "weka_60sessions_synthetic_offsets.canon.parquet")
    assert trace.frame.height == 1_579
    assert trace.notes == [
        "columns left out: user_id (was 'user' meant?), session_id (was 'session' meant?), model, hash_ids",
        "1,579 rows with a turn but no session: the turn is left out",
    ]

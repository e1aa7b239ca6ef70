"""Dynamo's traces: aliases, closed-loop sessions, priorities with tiers, and rows that wait for others."""

from __future__ import annotations

import gzip
import json

import pytest

from replay.errors import TraceError
from replay.traces.foreign.glimpse import glimpse
from replay.traces.formats import formats, import_trace


@pytest.fixture
def lines(tmp_path):
    def write(*rows: dict):
        path = tmp_path / "trace.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
        return path

    return write


def row(**fields) -> dict:
    return {"hash_ids": [1, 2], "output_length": 5, **fields}


def column(trace, name: str) -> list:
    return trace.frame[name].to_list()


def test_both_names_of_a_field_are_read_and_times_have_fractions(lines):
    path = lines(
        {"input_tokens": 600, "output_tokens": 5, "created_time": 10.25, "hash_ids": [1, 2]},
        {"input_length": 600, "output_length": 6, "timestamp": 10.250001, "hash_ids": [1, 2]},
    )
    trace = import_trace("dynamo", path)
    assert column(trace, "arrival") == [0, 1]
    assert trace.frame.select("prompt_tokens", "output_tokens", "session").rows() == [(600, 5, None), (600, 6, None)]
    assert (trace.block_size, trace.hash_scope, trace.notes) == (512, "global", [])


def test_a_packed_file_is_read_and_a_prompt_without_a_length_is_as_long_as_its_blocks(lines):
    path = lines(row(timestamp=0))
    packed = path.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    trace = import_trace("dynamo", packed, settings={"block_size": 64})
    assert column(trace, "prompt_tokens") == [128]
    assert trace.notes == ["1 row without a length: each is as long as its blocks"]


def test_turns_wait_their_delay_or_the_time_between_their_timestamps(lines):
    path = lines(
        row(session_id="a", input_length=600, timestamp=100),
        row(session_id="a", input_length=700, delay_ms=250.5),
        row(session_id="b", input_length=800, timestamp=110),
        row(session_id="b", input_length=900, timestamp=1_110),
    )
    trace = import_trace("dynamo", path)
    assert trace.frame.select("session", "turn", "prompt_tokens", "arrival", "think_time_ms").rows() == [
        ("a", 0, 600, 0, None),
        ("b", 0, 800, 10_000_000, None),
        ("a", 1, 700, 250_500_000, 250.5),
        ("b", 1, 900, 1_010_000_000, 1000.0),
    ]
    assert trace.notes[:2] == [
        "1 row without a delay: each waits the time between the timestamps, after the turn before",
        "1 row without a timestamp: each arrives no sooner than the turn before and its delay",
    ]


def test_a_larger_priority_is_more_urgent_and_a_tier_goes_before_it(lines):
    path = lines(
        row(timestamp=0, priority=-3, policy_class="batch"),
        row(timestamp=1, priority=7, strict_priority=0),
        row(timestamp=2, priority=-3, strict_priority=1),
        row(timestamp=3),
    )
    trace = import_trace("dynamo", path)
    assert column(trace, "priority") == [-3, 7, 2**32 - 3, None]
    assert column(trace, "slo") == ["batch", None, None, None]
    assert import_trace("dynamo", lines(row(timestamp=0, strict_priority=2**31 - 1))).frame["priority"].to_list() == [
        (2**31 - 1) * 2**32
    ]


def test_a_row_that_waits_goes_on_with_a_session_and_arrives_no_sooner_than_the_others(lines):
    path = lines(
        row(request_id="plan", timestamp=0, branches=["left", "right"]),
        row(request_id="left", wait_for=["plan"], delay=100),
        row(request_id="right", wait_for=["plan"], delay=300, tool_wait_ms=50),
        row(request_id="join", wait_for=["left", "right"], delay=10),
        row(request_id="other", timestamp=5),
    )
    trace = import_trace("dynamo", path)
    assert sorted(trace.frame.select("request_id", "session", "turn", "arrival", "think_time_ms").rows()) == [
        ("join", "plan", 2, 360_000_000, 10.0),
        ("left", "plan", 1, 100_000_000, 100.0),
        ("other", None, None, 5_000_000, None),
        ("plan", "plan", 0, 0, None),
        ("right", None, None, 350_000_000, None),
    ]
    assert "2 rows waiting for other sessions, too: each only arrives no sooner than what it waits for" in trace.notes


def test_waiting_for_what_is_not_there_is_said(lines):
    trace = import_trace("dynamo", lines(row(request_id="a", timestamp=3, wait_for=["b"], tool_events=[])))
    assert trace.notes == [
        "1 row waiting for what is not earlier in the file: it does not count",
        "1 row without a length: each is as long as its blocks",
        "fields left out: tool_events",
    ]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"session_id": "a", "timestamp": 9}, "row 1 (counted from 0), column 'timestamp': 9, but must be no earlier"),
        ({"delay_ms": -1}, "row 1 (counted from 0), column 'delay_ms': -1, but must be 0 or more milliseconds"),
        ({"strict_priority": -1}, "column 'strict_priority': -1, but must be from 0 to 2,147,483,647"),
        ({"priority": 2**31}, "column 'priority': 2147483648, but must be a number of 32 bits"),
        ({"wait_for": "a"}, "column 'wait_for': 'a', but must be a list of texts"),
        ({"dependencies": []}, "row 1 (counted from 0): is of dynamo's newer agentic format"),
    ],
)
def test_a_bad_row_is_named(lines, fields, sentence):
    with pytest.raises(TraceError) as fault:
        import_trace("dynamo", lines(row(session_id="a", timestamp=10), row(**fields)))
    assert sentence in str(fault.value)


def test_what_only_dynamo_has_is_taken_for_dynamos(lines):
    path = lines(row(input_tokens=600, created_time=0, session_id="a"))
    trace = import_trace("auto", path)
    assert trace.notes[0] == "the format is dynamo: no other fits"
    assert formats["dynamo"]().fits(glimpse(path))
    assert not formats["dynamo"]().fits(glimpse(lines({"input_length": 1, "output_length": 1})))

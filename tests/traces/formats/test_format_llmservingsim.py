"""LLMServingSim's JSON Lines: requests by themselves, and sessions of agents in a closed loop, in one file."""

from __future__ import annotations

import json

import pytest

from replay.errors import TraceError
from replay.traces.formats import import_trace

FLAT = {"input_toks": 3, "output_toks": 2, "arrival_time_ns": 4_059_740}
TURN = {"input_toks": 1_472, "output_toks": 133, "tool_duration_ns": 127_348_767}
LAST = {"input_toks": 1_734, "output_toks": 77, "tool_duration_ns": 9}


def session(name: str, arrival: int, *turns: dict[str, object]) -> dict[str, object]:
    return {"session_id": name, "arrival_time_ns": arrival, "sub_requests": list(turns)}


@pytest.fixture
def file(tmp_path):
    def write(*entries: object):
        path = tmp_path / "trace.jsonl"
        path.write_text("\n".join(json.dumps(entry) for entry in entries))
        return path

    return write


def test_requests_and_sessions_are_in_one_file_and_a_tool_s_time_is_the_next_turn_s_think_time(file):
    trace = import_trace(
        "auto", file(FLAT, session("s", 4_059_741, TURN, TURN, LAST), {**FLAT, "arrival_time_ns": 9**9})
    )
    columns = ("arrival", "prompt_tokens", "output_tokens", "session", "turn", "think_time_ms")
    assert trace.frame.select(columns).rows() == [
        (0, 3, 2, None, None, None),
        (1, 1_472, 133, "s", 0, None),
        (1, 1_472, 133, "s", 1, 127.348767),
        (1, 1_734, 77, "s", 2, 127.348767),
        (9**9 - 4_059_740, 3, 2, None, None, None),
    ]
    assert trace.notes == ["the format is llmservingsim: no other fits"]


def test_a_file_may_begin_with_a_session(file):
    path = file(session("s", 5, {"input_toks": 7, "output_toks": 1}, LAST))
    assert import_trace("auto", path).frame["think_time_ms"].to_list() == [None, 0.0]


def test_token_ids_of_prompts_are_kept_and_those_of_answers_left_out(file):
    path = file({**FLAT, "input_tok_ids": [7, 0, 9], "output_tok_ids": [1, 2]})
    trace = import_trace("llmservingsim", path)
    assert trace.frame["prompt_token_ids"].to_list() == [[7, 0, 9]]
    assert trace.notes == ["fields left out: output_tok_ids"]


def test_what_is_no_chain_is_skipped_and_counted(file):
    workflow = {"workflow_id": "w", "arrival_time_ns": 5, "nodes": [{"input_toks": 1}], "edges": []}
    trace = import_trace("llmservingsim", file(workflow, session("s", 1), FLAT, {**FLAT, "output_toks": 0}))
    assert trace.skipped == {
        "a workflow of several agents": 1,
        "a session without requests": 1,
        "zero output tokens": 1,
    }
    assert trace.rows_read == 4


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({**FLAT, "input_toks": 2.5}, r"row 1 .*, column 'input_toks': 2.5, but must be a whole number"),
        ({**FLAT, "input_tok_ids": [1, 2]}, r"row 1 .*column 'prompt_token_ids': .*, but must be as many ids as its"),
        ({**FLAT, "arrival_time_ns": -1}, "column 'arrival_ns': -1, but must be 0 or later"),
        (session("s", 1, {**TURN, "tool_duration_ns": -5_000_000}, LAST), "column 'think_time_ms': -5.0, but must be"),
        (session("s", 1, {**TURN, "tool_duration_ns": "soon"}), "column 'tool_duration_ns': 'soon', but must be"),
        ({**FLAT, "sub_requests": 5}, "column 'sub_requests': 5, but must be a list of objects"),
        ("a text", r"row 1 \(counted from 0\): is not a JSON object"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(file, entry, sentence):
    with pytest.raises(TraceError, match=sentence):
        import_trace("llmservingsim", file(FLAT, entry))


def test_the_sample_with_token_ids_is_imported_whole(samples):
    trace = import_trace("auto", samples / "llmservingsim" / "example_trace.jsonl")
    assert (trace.frame.height, trace.span_nanoseconds) == (10, 980_043_269)
    assert trace.frame["arrival"].head(3).to_list() == [0, 301_012_144, 432_686_713]
    assert trace.frame.select("prompt_tokens", "output_tokens").sum().row(0) == (120, 591)
    assert trace.frame["prompt_token_ids"].list.sum().sum() == 22_150


def test_the_sample_of_mixed_requests_is_imported_whole(samples):
    trace = import_trace("auto", samples / "llmservingsim" / "workload_me2_01_mixed.jsonl")
    assert (trace.frame.height, trace.span_nanoseconds) == (608, 60_898_463_000)
    assert trace.frame["arrival"].head(3).to_list() == [0, 42_833_000, 88_553_000]
    assert trace.frame.select("prompt_tokens", "output_tokens").sum().row(0) == (5_604_402, 1_837_003)

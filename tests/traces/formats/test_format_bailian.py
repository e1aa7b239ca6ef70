"""Qwen-Bailian: sessions by parent links, where they lead and where they are cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.errors import TraceError
from replay.traces.formats import import_trace


@pytest.fixture
def lines(tmp_path):
    def write(*rows: dict):
        path = tmp_path / "trace.jsonl"
        path.write_text("\r\n".join(json.dumps(row) for row in rows))
        return path

    return write


def chat(identity: int, parent: int = -1, **fields) -> dict:
    row = {"chat_id": identity, "parent_chat_id": parent, "timestamp": identity, "input_length": 33, "output_length": 4}
    return {**row, "type": "text", "turn": 1, "hash_ids": [1, 2, 3], **fields}


def rows(trace, *names: str) -> list:
    return trace.frame.select(*names).rows()


def test_times_are_seconds_and_blocks_have_16_tokens(lines):
    path = lines(chat(1, timestamp=61.114), chat(2, timestamp=61.1140005, type="search", hash_ids=None))
    trace = import_trace("bailian", path)
    assert rows(trace, "arrival", "request_id", "slo", "prefix_hashes", "prompt_tokens") == [
        (0, "1", "text", [1, 2, 3], 33),
        (500, "2", "search", None, 33),
    ]
    assert (trace.block_size, trace.hash_tail, trace.notes) == (16, "ceil", [])


def test_a_session_is_what_hangs_together_by_parents(lines):
    path = lines(chat(10), chat(11), chat(12, 10, turn=2), chat(13, 12, turn=3), chat(14, 11, turn=2))
    trace = import_trace("bailian", path)
    assert rows(trace, "session", "turn") == [("10", 0), ("11", 0), ("10", 1), ("10", 2), ("11", 1)]
    assert trace.notes == []


def test_a_parent_outside_a_branch_and_a_parent_that_comes_later_begin_sessions(lines):
    path = lines(
        chat(1, 99, turn=7),
        chat(2, 1),
        chat(3, 1),
        chat(4, 3),
        chat(5, 6),
        chat(6),
    )
    trace = import_trace("bailian", path)
    assert rows(trace, "session", "turn") == [("1", 0), ("1", 1), ("3", 0), ("3", 1), ("5", 0), ("6", 0)]
    assert trace.notes == [
        "2 rows with a parent that is not earlier in the file: each begins a session",
        "1 row with a parent that an earlier row continued: each begins a session",
    ]


def test_rows_that_are_not_in_order_hang_together_too(lines):
    trace = import_trace("bailian", lines(chat(3, 1, timestamp=2.5), chat(1, timestamp=1.5)))
    assert rows(trace, "session", "turn", "arrival") == [("1", 0, 0), ("1", 1, 10**9)]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            chat(2, timestamp=-0.5),
            "row 1 (counted from 0), column 'timestamp': '-0.5', but must be a number of 0 or more",
        ),
        (chat(2, input_length="3"), "row 1 (counted from 0), column 'input_length': '3', but must be of type Int64"),
        (chat(1, timestamp=5), "row 1 (counted from 0), column 'request_id': '1', but must be unique"),
    ],
)
def test_a_bad_row_is_named(lines, row, sentence):
    with pytest.raises(TraceError) as fault:
        import_trace("bailian", lines(chat(1), row))
    assert sentence in str(fault.value)


def test_a_file_of_another_kind_is_a_sentence(lines):
    with pytest.raises(TraceError, match="the field 'parent_chat_id' is missing; there are: chat_id, timestamp"):
        import_trace("bailian", lines({"chat_id": 1, "timestamp": 1}))


def test_it_is_found_by_its_fields(lines):
    assert import_trace("auto", lines(chat(1))).notes == ["the format is bailian: no other fits"]


LINK = st.tuples(st.integers(-1, 12), st.integers(0, 5))


@given(st.lists(LINK, min_size=1, max_size=10))
def test_turns_follow_each_other_in_every_session_however_rows_are_linked(tmp_path_factory, links):
    path = tmp_path_factory.mktemp("links") / "trace.jsonl"
    path.write_text("\n".join(json.dumps(chat(n, parent, timestamp=t)) for n, (parent, t) in enumerate(links)))
    trace = import_trace("bailian", path)
    places: dict[str, list[int]] = {}
    for session, turn in rows(trace, "session", "turn"):
        places.setdefault(session, []).append(turn)
    assert sum(map(len, places.values())) == len(links)
    assert all(turns == list(range(len(turns))) for turns in map(sorted, places.values()))

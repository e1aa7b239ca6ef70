"""AIPerf's mooncake_trace: sessions whose turns add to what came before, delays, text, and the way back."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.errors import ExperimentError, TraceError
from replay.traces.foreign.glimpse import glimpse
from replay.traces.formats import export_trace, formats, import_trace
from replay.traces.reading import read_trace


@pytest.fixture
def lines(tmp_path):
    def write(*rows: dict, name: str = "trace.jsonl"):
        path = tmp_path / name
        path.write_text("\n".join(json.dumps(row) for row in rows))
        return path

    return write


def column(trace, name: str) -> list:
    return trace.frame[name].to_list()


def turn(**fields) -> dict:
    return {"session_id": "a", "input_length": 100, "output_length": 20, **fields}


def test_a_turn_holds_what_came_before_it_and_waits_for_it(lines):
    path = lines(turn(), turn(delay=1500.5, input_length=50, output_length=7), turn(delay=2, input_length=1))
    trace = import_trace("aiperf", path, settings={"block_size": 64})
    assert column(trace, "prompt_tokens") == [100, 100 + 20 + 50, 170 + 7 + 1]
    assert column(trace, "output_tokens") == [20, 7, 20]
    assert column(trace, "turn") == [0, 1, 2]
    assert column(trace, "think_time_ms") == [None, 1500.5, 2.0]
    assert column(trace, "arrival") == [0, 1_500_500_000, 1_502_500_000]
    first, second, third = column(trace, "prefix_hashes")
    assert (len(first), len(second), len(third)) == (1, 2, 2)  # whole blocks of 64 in 100, 170 and 178 tokens
    assert (third, third[:1]) == (second, first)
    assert len(set(third)) == 2
    assert trace.notes == [
        "2 rows made longer by the turns before and their answers, as AIPerf sends them",
        "3 rows without a timestamp: at 0, or as much after the turn before as it is delayed",
    ]


def test_hash_ids_of_the_first_turn_stay_and_those_of_what_is_added_do_not(lines):
    path = lines(
        turn(input_length=130, hash_ids=[7, 8, 9], timestamp=5),
        turn(input_length=64, hash_ids=[7], delay=1),
        {"input_length": 130, "output_length": 1, "hash_ids": [7, 8, 9], "timestamp": 9},
    )
    trace = import_trace("aiperf", path, settings={"block_size": 64})
    hashes = column(trace, "prefix_hashes")
    assert hashes[0] == hashes[2] == [7, 8, 9]
    assert hashes[1][:2] == [7, 8]
    assert [id_ > 9 for id_ in hashes[1]] == [False, False, True]  # 130 + 20 + 64 tokens: 3 whole blocks
    assert column(trace, "session") == ["a", "a", None]
    assert "1 row with hash ids of what is added to a session: they are left out" in trace.notes


def test_rows_or_a_setting_say_that_prompts_are_whole(lines):
    rows = [turn(context_mode="message_array_with_responses"), turn(context_mode="message_array_with_responses")]
    assert column(import_trace("aiperf", lines(*rows)), "prompt_tokens") == [100, 100]
    assert column(import_trace("aiperf", lines(turn(), turn()), settings={"context": "whole"}), "prompt_tokens") == [
        100,
        100,
    ]
    rows = [turn(context_mode="deltas_with_responses"), turn(context_mode="deltas_with_responses")]
    assert column(import_trace("aiperf", lines(*rows)), "prompt_tokens") == [100, 200]  # its answer is in what it adds


def test_sessions_do_not_share_the_hashes_that_are_made(lines):
    trace = import_trace("aiperf", lines(turn(input_length=1024), turn(input_length=1024, session_id="b")))
    first, second = column(trace, "prefix_hashes")
    assert len({*first, *second}) == 4


def test_text_is_counted_by_an_estimate_that_is_said(lines):
    path = lines({"text_input": "Hello, world!", "output_length": 4, "timestamp": 1.25})
    trace = import_trace("aiperf", path)
    assert trace.frame.select("prompt_tokens", "prompt").row(0) == (4, "Hello, world!")  # 13 characters, by 4
    assert trace.notes == ["1 row with text: tokens are an estimate, of 4 characters each; a tokenizer counts them"]
    assert column(import_trace("aiperf", path, settings={"characters_per_token": 2.0}), "prompt_tokens") == [7]


def test_messages_hold_the_whole_of_a_chat_and_share_its_beginning(lines):
    said = [
        {"role": "user", "content": "a" * 40},
        {"role": "assistant", "content": [{"type": "text", "text": "b" * 24}]},
    ]
    path = lines(
        {"session_id": "s", "messages": said[:1], "output_length": 4},
        {"session_id": "s", "messages": said, "output_length": 4, "delay": 1},
    )
    trace = import_trace("aiperf", path, settings={"block_size": 4})
    assert column(trace, "prompt_tokens") == [10, 16]
    first, second = column(trace, "prefix_hashes")
    assert (len(second), second[:2]) == (4, first)
    path = lines(
        {"session_id": "s", "messages": said[:1], "output_length": 4, "message_mode": "delta"},
        {"session_id": "s", "messages": said[1:], "output_length": 4, "message_mode": "delta"},
    )
    assert column(import_trace("aiperf", path), "prompt_tokens") == [10, 10 + 4 + 6]


def test_an_answer_without_a_length_is_skipped_or_given_one(lines):
    path = lines({"input_length": 5, "timestamp": 0}, {"input_length": 6, "output_length": 0, "timestamp": 1}, turn())
    assert import_trace("aiperf", path).skipped == {"no output tokens given": 1, "zero output tokens": 1}
    trace = import_trace("aiperf", path, settings={"output_tokens": 64})
    assert (trace.skipped, sorted(column(trace, "output_tokens"))) == ({"zero output tokens": 1}, [20, 64])


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            {"payload": {"model": "m"}},
            "row 1 (counted from 0), column 'input_length': null, but must be given, or text",
        ),
        ({"input_length": 1.5}, "row 1 (counted from 0), column 'input_length': 1.5, but must be a whole number"),
        ({"input_length": 1, "timestamp": -1}, "column 'timestamp': -1, but must be 0 or more milliseconds"),
        ({"input_length": 1, "delay": "1"}, "column 'delay': '1', but must be a number"),
        ({"input_length": 1, "hash_ids": [True]}, "column 'hash_ids': [True], but must be a list of whole numbers"),
        ({"input_length": 1, "timestamp": 1e20}, "column 'timestamp': 1E+20, but must be within 292 years"),
        (turn(timestamp=1), "column 'turn': 1, but must be in order of arrival: an earlier turn of its session"),
    ],
)
def test_a_bad_row_is_named(lines, row, sentence):
    path = lines(turn(timestamp=2), row)
    with pytest.raises(TraceError) as fault:
        import_trace("aiperf", path)
    assert sentence in str(fault.value)
    with pytest.raises(ExperimentError, match="context: 'some' is neither added nor whole"):
        import_trace("aiperf", path, settings={"context": "some"})


def test_fields_that_are_strange_are_named_and_not_taken_for_ours(lines):
    path = lines({"input_length": 5, "output_length": 5, "timestamp": 3, "extra": {"top_p": 1}})
    assert import_trace("aiperf", path).notes == ["fields left out: extra"]
    assert formats["aiperf"]().fits(glimpse(path))
    assert not formats["aiperf"]().fits(glimpse(lines({"input_length": 5, "chat_id": 5})))


def test_the_published_schedules_are_imported_whole(samples):
    trace = import_trace("aiperf", samples / "aiperf" / "precise_schedule.jsonl")
    rows = [json.loads(row) for row in (samples / "aiperf" / "precise_schedule.jsonl").read_text().splitlines()]
    assert column(trace, "arrival") == [row["timestamp"] * 1_000_000 for row in rows]
    assert column(trace, "prefix_hashes") == [row["hash_ids"] for row in rows]
    trace = import_trace("aiperf", samples / "aiperf" / "production_trace.jsonl")
    rows = [json.loads(row) for row in (samples / "aiperf" / "production_trace.jsonl").read_text().splitlines()]
    assert column(trace, "prompt_tokens") == [row["input_length"] for row in rows]
    blocks = [row.get("hash_ids") and row["hash_ids"][: -(-row["input_length"] // 512)] for row in rows]
    assert column(trace, "prefix_hashes") == blocks


def test_a_session_is_written_with_whole_prompts_and_read_again_as_it_was(lines, tmp_path):
    path = lines(turn(input_length=700), turn(delay=1500.5), turn(session_id="b", timestamp=2000, hash_ids=[3]))
    trace = import_trace("aiperf", path)
    assert export_trace("aiperf", trace, tmp_path / "out.jsonl") == [
        "2 prompts with hash ids for fewer blocks than there are: readers that make prompts from the ids alone shorten "
        "them; `-o fill=true` gives every block an id",
    ]
    written = [json.loads(row) for row in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["context_mode"] for row in written] == ["message_array_with_responses"] * 3
    again = import_trace("aiperf", tmp_path / "out.jsonl")
    assert again.frame.equals(trace.frame)


def test_turns_at_one_instant_are_written_in_order_and_numbers_that_are_lost_are_remarked_upon(trace_of, tmp_path):
    trace = trace_of(
        arrival_ns=[0, 0, 0], prompt_tokens=[1, 2, 3], session=["a", "b", "a"], turn=[5, 0, 2], user=["u"] * 3
    )
    assert export_trace("aiperf", trace, tmp_path / "out.jsonl") == [
        "turns are numbered from 0 in each session, as they come: the format holds their order",
        "left out: user (the format has no place for it)",
    ]
    again = import_trace("aiperf", tmp_path / "out.jsonl")
    assert again.frame.select("session", "turn", "prompt_tokens").rows() == [("b", 0, 2), ("a", 0, 3), ("a", 1, 1)]


TURN = st.tuples(st.integers(0, 3), st.integers(0, 10**13), st.integers(1_537, 9_000), st.none() | st.floats(0, 1e6))


@given(st.lists(TURN, min_size=1, max_size=8), st.lists(st.none() | st.lists(st.integers(0, 9), max_size=4)))
def test_a_trace_with_sessions_that_is_written_and_read_again_is_the_same(tmp_path_factory, rows, hashes):
    folder = tmp_path_factory.mktemp("again")
    sessions, arrivals, prompts, thinks = zip(*sorted(rows, key=lambda row: row[1]), strict=True)
    names = [None if session == 0 else f"s{session}" for session in sessions]
    pl.DataFrame(
        {
            "arrival_ns": [arrival - arrivals[0] for arrival in arrivals],
            "prompt_tokens": prompts,
            "output_tokens": [3] * len(rows),
            "session": pl.Series(names, dtype=pl.String),
            "turn": pl.Series(
                [None if name is None else names[:place].count(name) for place, name in enumerate(names)],
                dtype=pl.Int64,
            ),
            "think_time_ms": pl.Series(thinks, dtype=pl.Float64),
            "prefix_hashes": pl.Series([*hashes, *[None] * len(rows)][: len(rows)], dtype=pl.List(pl.Int64)),
        }
    ).write_parquet(folder / "trace.parquet", metadata={"block_size": "512"})
    trace = read_trace(folder / "trace.parquet")
    export_trace("aiperf", trace, folder / "out.jsonl")
    assert import_trace("aiperf", folder / "out.jsonl").frame.equals(trace.frame)

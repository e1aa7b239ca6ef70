"""TraceLab's CSV: rounds of sessions, whose prefix lengths become hashes that are really shared."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.errors import TraceError
from replay.traces.formats import import_trace

HEADER = "session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms"


@pytest.fixture
def file(tmp_path):
    def write(*rows: str, header: str = HEADER):
        path = tmp_path / "trace.csv"
        path.write_text("\n".join([header, *rows]))
        return path

    return write


def test_a_prompt_is_prefix_and_input_and_waits_are_the_next_round_s_think_time(file):
    trace = import_trace("auto", file("s,250.5,0,0,512,64,100", "s,250.5,1,576,128,64,12.5", "t,0,0,0,10,1,9"))
    assert trace.frame.select("session", "turn", "arrival", "prompt_tokens", "think_time_ms").rows() == [
        ("t", 0, 0, 10, None),
        ("s", 0, 250_500_000, 512, None),
        ("s", 1, 250_500_000, 704, 100.0),
    ]
    assert (trace.block_size, trace.hash_scope, trace.hash_tail) == (64, "session", "floor")


def test_a_block_is_shared_if_all_of_it_is_kept_from_the_prompt_before(file):
    rows = [
        "s,0,0,0,10,5,0",  # blocks of 4: 0 1 | 2 tokens over
        "s,0,1,15,6,1,0",  # prompt and answer kept: two whole blocks of the prompt, three new ones of 21 tokens
        "s,0,2,7,2,1,0",  # shrunk: one whole block kept, one new
        "s,0,3,10,2,1,0",  # grown from 9 tokens: both kept, one new
    ]
    trace = import_trace("tracelab", file(*rows), settings={"block_size": 4})
    assert trace.frame["prompt_tokens"].to_list() == [10, 21, 9, 12]
    assert trace.frame["prefix_hashes"].to_list() == [[0, 1], [0, 1, 2, 3, 4], [0, 5], [0, 5, 6]]


def test_rounds_in_any_order_begin_with_their_session_and_what_is_odd_is_said(file):
    trace = import_trace("tracelab", file("s,700,1,8,4,1,0", "s,500,0,64,4,1,30"))
    assert trace.frame.select("turn", "arrival", "prompt_tokens", "think_time_ms").rows() == [
        (1, 0, 12, 30.0),
        (0, 0, 68, None),
    ]
    assert trace.notes == [
        "1 row with another arrival_time than the first of its session, which counts",
        "1 first round with a prefix: nothing is before it, so it is new",
    ]


def test_the_session_may_be_called_id_and_arrivals_may_lack(file):
    header = "id,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms"
    trace = import_trace("auto", file("a,0,0,5,1,10", "b,0,0,6,1,10", "b,1,6,6,1,10", header=header))
    assert trace.frame.select("session", "arrival").rows() == [("a", 0), ("b", 0), ("b", 0)]
    assert trace.notes[1] == "no column arrival_time: every session begins at 0"


def test_failed_rounds_and_rows_of_no_session_are_skipped(file):
    trace = import_trace("tracelab", file("s,0,0,0,64,1,5", "s,0,1,64,64,0,6", "s,0,2,128,64,1,7", ",0,0,0,5,1,0"))
    assert trace.skipped == {"no session given": 1, "zero output tokens": 1}
    assert trace.frame.select("turn", "think_time_ms", "prefix_hashes").rows() == [(0, None, [0]), (2, 6.0, [0, 1, 2])]


def test_a_round_of_unknown_length_leaves_no_trace_in_the_hashes_of_those_after_it(file):
    rows = ["s,0,0,0,12,1,0", "s,0,1,12,,1,0", "s,0,2,8,8,1,0"]
    trace = import_trace("tracelab", file(*rows), settings={"block_size": 4})
    assert trace.frame["prefix_hashes"].to_list() == [[0, 1, 2], [0, 1, 3, 4]]
    assert trace.skipped == {"no prompt tokens given": 1}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("s,0,1,-1,64,1,5", r"row 1 \(counted from 0\), column 'prefix_len': '-1', but must be a whole number from 0"),
        ("s,0,1,0,16777217,1,5", "column 'input_len': '16777217', but must be a whole number from 0 to 16,777,216"),
        ("s,0,0,0,64,1,5", "column 'turn': 0, but must be there once in its session"),
        ("s,0,1,0,64,1,soon", "column 'tool_wait_after_ms': 'soon', but must be a number"),
        ("s,0,1", None),
        ("s,0,1,0,64,1,5,8", "cannot be read as CSV"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named(file, row, sentence):
    path = file("s,0,0,0,64,1,5", row)
    if sentence is None:
        assert import_trace("tracelab", path).skipped == {"no prompt tokens given": 1}
        return
    with pytest.raises(TraceError, match=sentence):
        import_trace("tracelab", path)


def test_the_sample_is_imported_whole(samples):
    trace = import_trace("auto", samples / "tracelab" / "multi_session_example.csv")
    frame = trace.frame
    assert frame.select("session", "turn", "arrival", "prompt_tokens", "output_tokens", "think_time_ms").rows() == [
        ("0", 0, 0, 512, 64, None),
        ("0", 1, 0, 704, 64, 100.0),
        ("0", 2, 0, 896, 64, 100.0),
        ("1", 0, 200_000_000, 400, 48, None),
        ("1", 1, 200_000_000, 548, 48, 80.0),
        ("2", 0, 500_000_000, 600, 64, None),
        ("2", 1, 500_000_000, 784, 48, 50.0),
        ("2", 2, 500_000_000, 864, 48, 50.0),
    ]
    assert frame["prefix_hashes"].list.len().to_list() == [8, 11, 14, 6, 8, 9, 12, 13]
    shared = [8, 11, 6, 9, 12]  # what fits of 64 tokens into 512, 704, 400, 600 and 784
    assert sum(shared) == frame["prefix_hashes"].list.len().sum() - hashes_in(frame)


def hashes_in(frame) -> int:
    return frame.select("session", pl.col("prefix_hashes")).explode("prefix_hashes").unique().height


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(1, 20)), min_size=1, max_size=6),
    st.integers(1, 9),
)
def test_equal_hashes_are_equal_tokens_of_the_context_as_it_is_kept(tmp_path_factory, rounds, block_size):
    """The prompts are built token by token here, as the format says; answers are tokens of nobody's prompt."""
    path = tmp_path_factory.mktemp("tracelab") / "trace.csv"
    rows = [f"s,0,{n},{prefix},{new},{out},0" for n, (prefix, new, out) in enumerate(rounds)]
    path.write_text("\n".join([HEADER, *rows]))
    trace = import_trace("tracelab", path, settings={"block_size": block_size})
    blocks: dict[int, tuple[object, ...]] = {}
    context: list[object] = []
    for (number, (prefix, new, _)), hashes in zip(enumerate(rounds), trace.frame["prefix_hashes"], strict=True):
        kept = context[:prefix]
        prompt = [*kept, *(("new", number, place) for place in range(prefix + new - len(kept)))]
        assert len(hashes) == len(prompt) // block_size
        for place, name in enumerate(hashes):
            tokens = tuple(prompt[: (place + 1) * block_size])
            assert blocks.setdefault(name, tokens) == tokens
        known = {tokens: name for name, tokens in blocks.items()}
        assert len(known) == len(blocks)  # and equal tokens have equal hashes
        context = prompt  # what is kept of the answer behind it is new

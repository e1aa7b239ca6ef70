"""Mooncake's JSON Lines: milliseconds, global hashes of 512-token blocks, and the same again when written."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.errors import ExperimentError, TraceError
from replay.traces.formats import export_trace, import_trace
from replay.traces.reading import read_trace


def line(**fields) -> str:
    parts = {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2], **fields}
    return "{" + ", ".join(f'"{name}": {value}' for name, value in parts.items()) + "}\n"


@pytest.fixture
def file(tmp_path):
    def write(content: str | bytes, name: str = "trace.jsonl"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def column(trace, name: str) -> list:
    return trace.frame[name].to_list()


def test_rows_have_milliseconds_and_global_blocks_of_512_tokens(file):
    trace = import_trace(
        "mooncake", file(line() + line(timestamp=3000) + "\n" + line(timestamp=3000.5, hash_ids="null"))
    )
    assert column(trace, "arrival") == [0, 3_000_000_000, 3_000_500_000]
    assert column(trace, "prefix_hashes") == [[1, 2], [1, 2], None]
    assert (trace.block_size, trace.hash_scope, trace.hash_tail, trace.notes) == (512, "global", "ceil", [])


def test_a_time_of_thirteen_digits_keeps_its_fraction(file):
    times = ("1722470400000.1", "1722470400000.123", "1722470400001")
    trace = import_trace("mooncake", file("".join(line(timestamp=time) for time in times)))
    assert column(trace, "arrival") == [0, 23_000, 900_000]


def test_packed_with_carriage_returns_unsorted_twice_the_same_and_no_newline_at_the_end(file):
    text = (line(timestamp=7) + line(timestamp=7) + line(timestamp=2, output_length=0) + line(timestamp=3)).strip()
    trace = import_trace("mooncake", file(gzip.compress(text.replace("\n", "\r\n").encode()), "trace.jsonl.gz"))
    assert column(trace, "arrival") == [0, 4_000_000, 4_000_000]
    assert trace.skipped == {"zero output tokens": 1}


def test_hash_ids_may_be_64_bits_without_a_sign(file):
    trace = import_trace("mooncake", file(line(hash_ids="[18446744073709551615, 0]")))
    assert column(trace, "prefix_hashes") == [[-1, 0]]


def test_hashes_beyond_the_prompt_are_left_out_with_a_note(file):
    content = line(input_length=512) + line(input_length=513)
    trace = import_trace("mooncake", file(content))
    assert column(trace, "prefix_hashes") == [[1], [1, 2]]
    assert trace.notes == ["1 row with more hashes than blocks: those beyond the prompt are left out"]
    settings = {"block_size": 256, "hash_tail": "floor"}
    trace = import_trace("mooncake", file(content), settings=settings)
    assert (trace.block_size, trace.hash_tail, trace.notes) == (256, "floor", [])
    assert "imported as mooncake, block_size = 256, hash_tail = floor from trace.jsonl" in trace.history[0]


def test_a_field_that_nobody_asked_for_is_named(file):
    assert import_trace("mooncake", file(line(model='"m"'))).notes == ["fields left out: model"]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("nonsense\n", "row 1 (counted from 0): is not JSON; each line must be one object"),
        ("[1, 2]\n", "row 1 (counted from 0): is not a JSON object"),
        (line(input_length='"600"'), "row 1 (counted from 0), column 'input_length': '600', but must be"),
        (line(input_length=2.5), "row 1 (counted from 0), column 'input_length': 2.5, but must be"),
        (line(hash_ids="[1, 2.5]"), "row 1 (counted from 0), column 'hash_ids': [1, 2.5], but must be"),
        (line(hash_ids="[1, -2]"), "row 1 (counted from 0), column 'hash_ids': [1, -2], but must be"),
        (
            line(timestamp=-5),
            "row 1 (counted from 0), column 'timestamp': '-5.0', but must be a number of 0 or more (ms)",
        ),
    ],
)
def test_a_bad_line_is_named(file, row, sentence):
    path = file(line() + row)
    with pytest.raises(TraceError) as fault:
        import_trace("mooncake", path)
    assert str(fault.value).startswith(str(path))
    assert sentence in str(fault.value)


def test_what_is_no_mooncake_file_is_a_sentence(file):
    with pytest.raises(TraceError, match=r"the field 'output_length' is missing; there are: timestamp, input_length"):
        import_trace("mooncake", file('{"timestamp": 1, "input_length": 2}\n'))
    with pytest.raises(ExperimentError, match="hash_tail: 'half' is neither ceil nor floor"):
        import_trace("mooncake", file(line()), settings={"hash_tail": "half"})


def test_a_file_with_mooncakes_fields_alone_may_be_of_several_formats(file):
    with pytest.raises(TraceError, match=r"may be aiperf, dynamo, [a-z, ]*mooncake, vllm: name one of them"):
        import_trace("auto", file(line()))


def test_the_published_trace_is_imported_whole(samples):
    path = samples / "mooncake" / "synthetic_trace.jsonl"
    trace = import_trace("mooncake", path)
    rows = [json.loads(text) for text in path.read_text().splitlines()]
    assert column(trace, "arrival") == [row["timestamp"] * 1_000_000 for row in rows]
    assert column(trace, "prompt_tokens") == [row["input_length"] for row in rows]
    assert column(trace, "prefix_hashes") == [row["hash_ids"] for row in rows]
    assert (trace.frame.height, trace.span_nanoseconds, trace.notes) == (3_993, 1_022_025_000_000, [])
    lengths = trace.frame["prefix_hashes"].list.len()
    assert (lengths == (trace.frame["prompt_tokens"] + 511) // 512).all()  # the last, partial block has a hash


def test_the_published_trace_is_written_as_it_was(samples, tmp_path):
    path = samples / "mooncake" / "synthetic_trace.jsonl"
    assert export_trace("mooncake", import_trace("mooncake", path), tmp_path / "again.jsonl") == []
    assert [json.loads(row) for row in (tmp_path / "again.jsonl").read_text().splitlines()] == [
        json.loads(row) for row in path.read_text().splitlines()
    ]


def test_whole_milliseconds_are_whole_numbers_and_others_are_not_rounded_unless_asked(trace_of, tmp_path):
    trace = trace_of(arrival_ns=[0, 1_500_000, 2_000_001])
    assert export_trace("mooncake", trace, tmp_path / "exact.jsonl") == []
    assert times(tmp_path / "exact.jsonl") == [0, 1.5, 2.000001]
    remarks = export_trace("mooncake", trace, tmp_path / "whole.jsonl", whole_ms=True)
    assert remarks == ["2 arrivals rounded to whole ms"]
    assert (tmp_path / "whole.jsonl").read_text().splitlines() == [
        '{"timestamp":0,"input_length":1,"output_length":1}',
        '{"timestamp":2,"input_length":1,"output_length":1}',
        '{"timestamp":2,"input_length":1,"output_length":1}',
    ]


def test_times_beyond_what_a_float_holds_to_the_nanosecond_are_remarked_upon(trace_of, tmp_path):
    trace = trace_of(arrival_ns=[0, 2**53 + 1])
    assert export_trace("mooncake", trace, tmp_path / "out.jsonl") == [
        "arrivals beyond 99 days are rounded: floats of ms do not hold each nanosecond"
    ]


def times(path) -> list:
    return [json.loads(row)["timestamp"] for row in path.read_text().splitlines()]


def written(path) -> list:
    return [json.loads(row)["hash_ids"] for row in path.read_text().splitlines()]


def test_negative_hashes_are_renumbered_in_order_of_first_use(trace_of, tmp_path):
    hashes = [[-5, 7], None, [-5, 9], []]
    trace = trace_of(
        metadata={"block_size": "512"}, arrival_ns=[0, 1, 2, 3], prompt_tokens=[1024] * 4, prefix_hashes=hashes
    )
    remarks = export_trace("mooncake", trace, tmp_path / "out.jsonl")
    assert written(tmp_path / "out.jsonl") == [[0, 1], None, [0, 2], []]
    assert remarks[0] == "hash ids are renumbered from 0 in order of first use, because they are negative in the trace"
    assert remarks[1].startswith("2 prompts with hash ids for fewer blocks than there are: ")


def test_hashes_that_are_local_to_a_session_get_numbers_that_no_other_session_has(trace_of, tmp_path):
    trace = trace_of(
        metadata={"block_size": "512", "hash_scope": "session"},
        arrival_ns=[0, 1, 2],
        prompt_tokens=[1024] * 3,
        session=["a", "b", "a"],
        prefix_hashes=[[1, 2], [1, 2], [1, 3]],
    )
    remarks = export_trace("mooncake", trace, tmp_path / "out.jsonl")
    assert written(tmp_path / "out.jsonl") == [[0, 1], [2, 3], [0, 4]]
    assert remarks == [
        "hash ids are renumbered from 0 in order of first use, because they are local to a session in the trace",
        "left out: session (the format has no place for it)",
    ]


def test_prompts_can_be_filled_with_ids_of_their_own(trace_of, tmp_path):
    trace = trace_of(
        metadata={"block_size": "16", "hash_tail": "floor"},
        arrival_ns=[0, 1, 2],
        prompt_tokens=[33, 32, 40],
        prefix_hashes=[[4, 8], [4, 8], None],
    )
    remarks = export_trace("mooncake", trace, tmp_path / "out.jsonl", fill=True)
    assert written(tmp_path / "out.jsonl") == [[4, 8, 9], [4, 8], [10, 11, 12]]
    assert remarks[0] == "2 prompts filled with ids that occur once, for blocks of 16 tokens"
    assert remarks[1].startswith("the hash ids are of blocks of 16 tokens, not 512: tell the reader (vLLM: --timed")
    assert remarks[2] == "a partial last block has no hash id: to read it back, say `-o hash_tail=floor`"


HASHES = st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=3))
ROW = st.tuples(st.integers(0, 10**15), st.integers(1_025, 9_000), st.integers(1, 900), HASHES)


@given(st.lists(ROW, min_size=1, max_size=6))
def test_a_trace_that_is_written_and_read_again_is_the_same(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("again")
    first = min(row[0] for row in rows)
    arrivals, prompts, outputs, hashes = zip(*sorted(rows, key=lambda row: row[0]), strict=True)
    pl.DataFrame(
        {
            "arrival_ns": [arrival - first for arrival in arrivals],
            "prompt_tokens": prompts,
            "output_tokens": outputs,
            "prefix_hashes": pl.Series(hashes, dtype=pl.List(pl.Int64)),
        }
    ).write_parquet(folder / "trace.parquet", metadata={"block_size": "512"})
    trace = read_trace(folder / "trace.parquet")
    export_trace("mooncake", trace, folder / "out.jsonl")
    again = import_trace("mooncake", folder / "out.jsonl")
    assert again.frame.equals(trace.frame)
    assert all(before <= after for before, after in pairwise(column(again, "arrival")))

"""vLLM's timed_trace: seconds and 16-token blocks, unless settings say otherwise."""

from __future__ import annotations

import json

import pytest

from replay.errors import ExperimentError, TraceError
from replay.traces.formats import export_trace, import_trace

ROWS = (
    '{"timestamp": 1723456789.123, "input_length": 33, "output_length": 5, "hash_ids": [1, 2, 3]}\n'
    '{"timestamp": 1723456789.123456, "input_length": 16, "output_length": 7, "hash_ids": [1]}\n'
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text(ROWS)
    return path


def test_times_are_seconds_and_blocks_have_16_tokens(file):
    trace = import_trace("vllm", file)
    assert trace.frame["arrival"].to_list() == [0, 456_000]
    assert trace.frame["prefix_hashes"].to_list() == [[1, 2, 3], [1]]
    assert (trace.block_size, trace.notes) == (16, [])


def test_unit_block_size_and_labels_are_settings(file):
    file.write_text('{"ts": 1500, "in": 1024, "out": 5, "blocks": [1, 2]}\n{"ts": 1500.25, "in": 1, "out": 5}\n')
    labels = {"timestamp": "ts", "input_length": "in", "output_length": "out", "hash_ids": "blocks"}
    settings = {"time_unit": "ms", "block_size": 512, **labels}
    trace = import_trace("vllm", file, settings=settings)
    assert trace.frame["arrival"].to_list() == [0, 250_000]
    assert trace.frame["prefix_hashes"].to_list() == [[1, 2], None]
    remarks = export_trace("vllm", trace, file.with_name("out.jsonl"), **settings)
    assert remarks[-1] == "times are in ms: tell the reader (--timed-trace-sec-multiplier 0.001)"
    assert file.with_name("out.jsonl").read_text().splitlines() == [
        '{"ts":0.0,"in":1024,"out":5,"blocks":[1,2]}',
        '{"ts":0.25,"in":1,"out":5,"blocks":null}',
    ]
    assert import_trace("vllm", file.with_name("out.jsonl"), settings=settings).frame.equals(trace.frame)


def test_a_label_that_is_not_there_is_a_sentence(file):
    with pytest.raises(TraceError, match=r"the field 'ts' is missing; there are: timestamp, input_length, output"):
        import_trace("vllm", file, settings={"timestamp": "ts"})
    with pytest.raises(ExperimentError, match="time_unit: 'minutes' is none of s, ms, us, ns"):
        import_trace("vllm", file, settings={"time_unit": "minutes"})


def test_written_and_read_again_a_trace_is_the_same(file):
    trace = import_trace("vllm", file)
    out = file.with_name("out.jsonl")
    assert export_trace("vllm", trace, out) == []
    assert [json.loads(row)["timestamp"] for row in out.read_text().splitlines()] == [0.0, 0.000456]
    assert import_trace("vllm", out).frame.equals(trace.frame)


def test_blocks_of_another_size_are_written_with_what_the_reader_must_be_told(file):
    trace = import_trace("vllm", file, settings={"block_size": 8})
    remarks = export_trace("vllm", trace, file.with_name("out.jsonl"))
    assert remarks == [
        "2 prompts with hash ids for fewer blocks than there are: readers that make prompts from the ids alone "
        "shorten them; `-o fill=true` gives every block an id",
        "the hash ids are of blocks of 8 tokens, not 16: tell the reader "
        "(vLLM: --timed-trace-chunk-hash-size 8; replay: -o block_size=8)",
    ]

"""guidellm's traces: three containers, columns by settable names, times since the start or since 1970."""

from __future__ import annotations

import json
from datetime import datetime

import polars as pl
import pytest

from replay.errors import TraceError
from replay.traces.formats import import_trace

NAMES = {"timestamp_column": "ts", "prompt_tokens_column": "in", "output_tokens_column": "out"}


def arrivals(trace) -> list[int]:
    return trace.frame["arrival"].to_list()


def test_csv_is_read_digit_by_digit(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("timestamp,input_length,output_length,duration\n1723456789.000000001,5,1,9\n1723456789.5,6,2,9\n")
    trace = import_trace("auto", file)
    assert arrivals(trace) == [0, 499_999_999]
    assert trace.frame.select("prompt_tokens", "output_tokens").rows() == [(5, 1), (6, 2)]
    assert trace.notes == ["the format is guidellm: no other fits", "columns left out: duration"]


def test_json_lines_may_have_hash_ids_of_512_tokens_or_as_set(tmp_path):
    file = tmp_path / "trace.jsonl"
    entry = {"timestamp": 0.1, "input_length": 513, "output_length": 1, "hash_ids": [4, 5]}
    file.write_text(f"{json.dumps(entry)}\n{json.dumps({**entry, 'timestamp': 0.25, 'hash_ids': [4]})}\n")
    trace = import_trace("guidellm", file)
    assert arrivals(trace) == [0, 150_000_000]
    assert trace.frame["prefix_hashes"].to_list() == [[4, 5], [4]]
    assert trace.block_size == 512
    assert import_trace("guidellm", file, settings={"hash_id_block_size": 256}).block_size == 256


def test_parquet_may_have_numbers_or_times_of_its_own(tmp_path):
    file = tmp_path / "trace.parquet"
    lengths = {"input_length": [5, 6], "output_length": [1, 2]}
    pl.DataFrame({"timestamp": [0.5, 2.000000001], **lengths}).write_parquet(file)
    trace = import_trace("auto", file)
    assert arrivals(trace) == [0, 1_500_000_001]
    assert trace.block_size is None
    times = [datetime(2024, 5, 10, 0, 0, 1), datetime(2024, 5, 10, 0, 0, 3)]
    pl.DataFrame({"timestamp": times, **lengths, "hash_ids": [[1], [1]], "note": ["", ""]}).write_parquet(file)
    trace = import_trace("guidellm", file)
    assert arrivals(trace) == [0, 2 * 10**9]
    assert trace.frame["prefix_hashes"].to_list() == [[1], [1]]
    assert trace.notes == ["columns left out: note"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_names_are_settings_and_a_missing_one_is_named(tmp_path, suffix):
    file = tmp_path / f"trace.{suffix}"
    rows = pl.DataFrame({"ts": [1.0, 1.25], "in": [5, 6], "out": [1, 2]})
    {"csv": rows.write_csv, "jsonl": rows.write_ndjson, "parquet": rows.write_parquet}[suffix](file)
    trace = import_trace("guidellm", file, settings=NAMES)
    assert arrivals(trace) == [0, 250_000_000]
    assert trace.history[0].startswith("imported as guidellm, timestamp_column = ts, prompt_tokens_column = in")
    with pytest.raises(TraceError, match="'timestamp' is missing; there are: ts, in, out"):
        import_trace("guidellm", file)


def test_a_bad_value_is_named(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("timestamp,input_length,output_length\n1,5,1\n2,5.5,1\n")
    with pytest.raises(
        TraceError, match=r"row 1 \(counted from 0\), column 'input_length': '5.5', but must be a whole"
    ):
        import_trace("guidellm", file)
    file = tmp_path / "trace.parquet"
    pl.DataFrame({"timestamp": ["a"], "input_length": [5], "output_length": [1]}).write_parquet(file)
    with pytest.raises(TraceError, match="the column 'arrival_s' is String"):
        import_trace("guidellm", file)


def test_json_lines_with_these_names_are_of_other_formats_too(tmp_path):
    file = tmp_path / "trace.jsonl"
    file.write_text('{"timestamp": 1, "input_length": 1, "output_length": 1}\n')
    with pytest.raises(TraceError, match=r"may be .*guidellm.*: name one of them"):
        import_trace("auto", file)

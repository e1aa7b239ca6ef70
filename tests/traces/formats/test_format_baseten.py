"""Baseten's Parquet, as AIPerf reads it: times since 1970, text, hashes, and failed requests."""

from __future__ import annotations

import polars as pl
import pytest

from replay.errors import TraceError
from replay.traces.formats import import_trace

ROWS = {
    "timestamp_start_unix_ms": [1_750_000_000_250, 1_750_000_000_000, 1_750_000_000_000],
    "prompt": ["later", "sooner", "as soon"],
    "input_tokens": [130, 65, 7],
    "output_tokens": [5, 9, 0],
    "total_hashes": pl.Series([[2**63 + 5, 1, 2], [2**63 + 5], None], dtype=pl.List(pl.UInt64)),
    "provided_session_id": ["s", "s", None],
    "block_size": [64, 64, None],
    "duration_e2e_ms": [100, 200, 300],
    "request_canceled": [0, 0, 0],
}


@pytest.fixture
def file(tmp_path):
    def write(name: str = "trace.parquet", **columns):
        path = tmp_path / name
        frame = pl.DataFrame(ROWS).with_columns(**{key: value for key, value in columns.items() if value is not None})
        frame = frame.drop(key for key, value in columns.items() if value is None)
        (frame.write_ipc if name.endswith(".arrow") else frame.write_parquet)(path)
        return path

    return write


@pytest.mark.parametrize("name", ["trace.parquet", "trace.arrow"])
def test_rows_are_read_from_parquet_and_from_arrow(file, name):
    trace = import_trace("baseten", file(name))
    assert trace.frame.select("arrival", "prompt_tokens", "output_tokens", "prompt", "session").rows() == [
        (0, 65, 9, "sooner", "s"),
        (250_000_000, 130, 5, "later", "s"),
    ]
    assert trace.frame["prefix_hashes"].to_list() == [[-(2**63) + 5], [-(2**63) + 5, 1, 2]]
    assert trace.skipped == {"zero output tokens": 1}
    assert (trace.block_size, trace.hash_tail) == (64, "ceil")
    assert trace.notes == ["columns left out: duration_e2e_ms", "1 row out of order: sorted by arrival"]


def test_what_need_not_be_there_is_not_needed_and_whole_blocks_are_a_setting(file):
    path = file(total_hashes=None, provided_session_id=None, block_size=None, request_canceled=None, prompt=None)
    trace = import_trace("baseten", path)
    assert (trace.block_size, trace.frame["session"].null_count()) == (None, 2)
    trace = import_trace("baseten", file(block_size=None), settings={"block_size": 32, "hash_tail": "floor"})
    assert (trace.block_size, trace.hash_tail) == (32, "floor")


def test_cancelled_requests_are_skipped_and_another_column_may_name_the_sessions(file):
    path = file(
        request_canceled=pl.Series([1, 0, 0]), poor_man_session_id=pl.Series([3, 4, 4]), org_id=pl.Series([8, 9, 9])
    )
    trace = import_trace("baseten", path, settings={"session": "poor_man_session_id"})
    assert trace.skipped == {"cancelled": 1, "zero output tokens": 1}
    assert trace.frame.select("user", "session").rows() == [("9", "4")]


def test_files_that_cannot_be_read_are_a_sentence(file, tmp_path):
    with pytest.raises(TraceError, match=r"has hashes of blocks of different sizes \(32, 64\); a trace has one"):
        import_trace("baseten", file(block_size=pl.Series([64, 32, 32])))
    with pytest.raises(TraceError, match="its hashes are of blocks of 64 tokens, not 16"):
        import_trace("baseten", file(), settings={"block_size": 16})
    with pytest.raises(TraceError, match="the column 'input_tokens' is missing"):
        import_trace("baseten", file(input_tokens=None))
    with pytest.raises(TraceError, match="the column 'input_tokens' is String, but must be whole numbers"):
        import_trace("baseten", file(input_tokens=pl.Series(["1", "2", "3"])))
    with pytest.raises(TraceError, match="the column 'sess' is missing"):
        import_trace("baseten", file(), settings={"session": "sess"})
    text = tmp_path / "text.parquet"
    text.write_text("no columns here, and nothing like them")
    with pytest.raises(TraceError, match=r"text\.parquet: cannot be read as Parquet or Arrow"):
        import_trace("baseten", text)


def test_it_is_found_by_its_columns(file):
    assert import_trace("auto", file()).notes[0] == "the format is baseten: no other fits"

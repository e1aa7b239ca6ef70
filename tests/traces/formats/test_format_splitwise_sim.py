"""Splitwise-sim's CSV: applications are users, a batch is several requests, other kinds of request are skipped."""

from __future__ import annotations

import pytest

from replay.errors import TraceError
from replay.traces.formats import import_trace

HEADER = "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size"


@pytest.fixture
def file(tmp_path):
    def write(*rows: str):
        path = tmp_path / "trace.csv"
        path.write_text("\n".join([HEADER, *rows, ""]))
        return path

    return write


def test_a_batch_is_as_many_requests_at_one_instant(file):
    trace = import_trace("auto", file("0,2,0,1.5,1,100,8", "1,2,1,2.25,3,200,9", "2,2,0,3,,300,10"))
    assert trace.frame.select("request_id", "arrival", "prompt_tokens", "output_tokens", "user").rows() == [
        ("0", 0, 100, 8, "0"),
        ("1/1", 750_000_000, 200, 9, "1"),
        ("1/2", 750_000_000, 200, 9, "1"),
        ("1/3", 750_000_000, 200, 9, "1"),
        ("2", 1_500_000_000, 300, 10, "0"),
    ]
    assert trace.notes == ["the format is splitwise-sim: no other fits"]


def test_requests_to_other_models_are_skipped(file):
    trace = import_trace("splitwise-sim", file("0,1,0,1,1,nothing,8", "1,2,0,2,1,200,9"))
    assert trace.frame["request_id"].to_list() == ["1"]
    assert trace.skipped == {"request_type is not 2, a language model's": 1}


@pytest.mark.parametrize("size", ["0", "-1", "4097", "1.5", "many"])
def test_a_batch_of_no_size_is_refused(file, size):
    with pytest.raises(TraceError, match=rf"row 1 .*, column 'batch_size': '{size}', but must be a number from 1 to"):
        import_trace("splitwise-sim", file("0,2,0,1,1,100,8", f"1,2,0,1,{size},100,8"))


def test_the_sample_is_imported_whole(samples):
    trace = import_trace("auto", samples / "splitwise-sim" / "test_trace.csv")
    assert trace.frame.select("request_id", "arrival", "prompt_tokens", "output_tokens", "user").rows() == [
        ("0", 0, 4_096, 32, "0"),
        ("1", 2 * 10**9, 2_048, 8, "0"),
        ("2", 3 * 10**9, 2_048, 16, "0"),
    ]

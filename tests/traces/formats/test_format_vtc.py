"""The VTC artefact's CSV: the adapter is the user."""

from __future__ import annotations

import pytest

from replay.errors import TraceError
from replay.traces.formats import import_trace

HEADER = "req_id,req_time_s,adapter_dir,model_dir,prompt_len,output_len"


def test_the_adapter_is_the_user_and_the_model_is_left_out(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text(f"{HEADER}\n7,0.5,lora-1,llama,13,199\n9,0.75,,llama,36,137\n")
    trace = import_trace("auto", file)
    assert trace.frame.select("arrival", "request_id", "user").rows() == [(0, "7", "lora-1"), (250_000_000, "9", None)]
    assert trace.notes == ["the format is vtc: no other fits", "columns left out: model_dir"]


def test_an_id_that_is_there_twice_is_refused(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text(f"{HEADER}\n7,0.5,a,m,13,199\n7,0.75,a,m,36,137\n")
    with pytest.raises(TraceError, match=r"row 1 \(counted from 0\), column 'request_id': '7', but must be unique"):
        import_trace("vtc", file)


def test_a_column_that_is_not_there_is_named(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("req_id,req_time_s,prompt_len,output_len\n1,0,1,1\n")
    with pytest.raises(TraceError, match="the column 'adapter_dir' is missing; there are: req_id, req_time_s"):
        import_trace("vtc", file)


def test_the_sample_is_imported_whole(samples):
    trace = import_trace("auto", samples / "vtc" / "vtc_real_trace.csv")
    arrival = trace.frame["arrival"]
    assert (trace.frame.height, trace.span_nanoseconds) == (1_500, 600 * 10**9)
    assert arrival.head(3).to_list() == [0, 207_937_542, 441_893_184]
    assert (arrival[-2], arrival.sum()) == (598_265_181_674, 468_485_718_265_477)
    assert trace.frame.select("prompt_tokens", "output_tokens").sum().row(0) == (204_398, 384_297)
    assert trace.frame["user"].n_unique() == 27
    assert trace.frame["user"][0] == "dummy-lora-7b-rank-8-13"

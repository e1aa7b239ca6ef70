"""Vidur's CSV: seconds as floats, rounded to the nanosecond, and written with nine digits."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.errors import TraceError
from replay.traces.formats import export_trace, import_trace
from replay.traces.reading import read_trace

HEADER = "arrived_at,num_prefill_tokens,num_decode_tokens"


@pytest.fixture
def file(tmp_path):
    def write(*rows: str):
        path = tmp_path / "trace.csv"
        path.write_text("\n".join([HEADER, *rows]))
        return path

    return write


def test_seconds_of_any_writing_are_exact_to_the_nanosecond(file):
    path = file("0.0,374,44", "5.8926549999999995,91,16", "11.836632999999999,369,74", "1.2e1,1,1", "13,1,1")
    trace = import_trace("auto", path)
    assert trace.frame["arrival"].to_list() == [0, 5_892_655_000, 11_836_633_000, 12 * 10**9, 13 * 10**9]
    assert trace.frame["prompt_tokens"].to_list() == [374, 91, 369, 1, 1]


def test_rows_out_of_order_are_sorted_and_failed_ones_skipped(file):
    trace = import_trace("vidur", file("2.5,1,1", "1.5,2,2", "1.75,3,0"))
    assert trace.frame["arrival"].to_list() == [0, 10**9]
    assert trace.notes == ["1 row out of order: sorted by arrival"]
    assert trace.skipped == {"zero output tokens": 1}


def test_a_bad_value_is_named(file):
    with pytest.raises(TraceError, match=r"row 1 .*, column 'arrived_at': 'soon', but must be a number"):
        import_trace("vidur", file("0.0,1,1", "soon,1,1"))


def test_the_sample_is_imported_whole(samples):
    trace = import_trace("auto", samples / "vidur" / "splitwise_conv_first2000.csv")
    arrival = trace.frame["arrival"]
    assert (trace.frame.height, trace.span_nanoseconds) == (2_000, 424_259_457_000)
    assert arrival.head(5).to_list() == [0, 4_314_579_000, 4_541_877_000, 4_710_427_000, 5_892_655_000]
    assert arrival.sum() == 437_711_519_758_000
    assert trace.frame.select("prompt_tokens", "output_tokens").sum().row(0) == (2_209_565, 529_807)


def test_what_is_written_can_be_read_by_others(trace_of, tmp_path):
    out = tmp_path / "out.csv"
    remarks = export_trace("vidur", trace_of(arrival_ns=[0, 4_314_579_001], user=["a", "b"]), out)
    assert out.read_text() == f"{HEADER}\n0.000000000,1,1\n4.314579001,1,1\n"
    assert remarks == ["left out: user (the format has no place for it)"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(1, 10**6), st.integers(1, 10**6)), min_size=1, max_size=5))
def test_there_and_back_is_the_same_trace(rows):
    with TemporaryDirectory() as folder:
        file, out = Path(folder) / "trace.parquet", Path(folder) / "out.csv"
        schema = {"arrival_ns": pl.Int64, "prompt_tokens": pl.Int64, "output_tokens": pl.Int64}
        pl.DataFrame(sorted(rows), schema, orient="row").write_parquet(file)
        trace = read_trace(file)
        assert export_trace("vidur", trace, out) == []
        assert import_trace("vidur", out).frame.equals(trace.frame)

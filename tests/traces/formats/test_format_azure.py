"""Azure's CSV, written: an instant to begin at, as many digits as it takes, and back again to the nanosecond."""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.errors import ExperimentError, TraceError
from replay.traces.formats import export_trace, import_trace
from replay.traces.reading import read_trace

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"


def test_years_mixed_in_one_file_without_a_last_newline_are_read_to_the_nanosecond(tmp_path):
    rows = [
        "2024-05-10 00:00:00.009930+00:00,5,1",
        "2024-05-10 00:00:01+00:00,6,2",
        "2024-05-10T00:00:01.269Z,7,3",
        "2024-05-10 00:00:02.1234567,8,4",
    ]
    file = tmp_path / "mixed.csv.gz"
    file.write_bytes(gzip.compress("\r\n".join([HEADER, *rows]).encode()))
    trace = import_trace("auto", file)
    assert trace.frame["arrival"].to_list() == [0, 990_070_000, 1_259_070_000, 2_113_526_700]
    assert trace.notes == ["the format is azure: no other fits"]


@pytest.mark.parametrize("year", ["0001", "1677", "2262", "2700", "9999"])
def test_a_time_that_64_bits_of_nanoseconds_do_not_hold_is_refused(tmp_path, year):
    file = tmp_path / "far.csv"
    file.write_text(f"{HEADER}\n2024-05-10 00:00:00,1,1\n{year}-05-10 00:00:00,1,1\n")
    with pytest.raises(TraceError, match=rf"row 1 .*, column 'TIMESTAMP': '{year}-05-10 00:00:00', but must be a time"):
        import_trace("azure", file)


def test_the_chat_trace_of_2023_comes_out_as_it_came_in(samples, tmp_path):
    source = samples / "azure2023" / "AzureLLMInferenceTrace_conv.csv"
    out = tmp_path / "again.csv"
    remarks = export_trace("azure", import_trace("azure", source), out, start="2023-11-16 18:15:46.6805900")
    assert out.read_text() == source.read_text() + "\n"  # newlines are translated, the last one is not there
    assert remarks == ["the first arrival is at 2023-11-16 18:15:46.6805900, as `-o start=...` says"]


def test_nine_digits_are_written_where_seven_do_not_hold_an_arrival(trace_of, tmp_path):
    out = tmp_path / "out.csv"
    export_trace("azure", trace_of(arrival_ns=[0, 1_500_000_100, 3_000_000_000]), out)
    assert out.read_text().splitlines()[1:] == [
        "1970-01-01 00:00:00.0000000,1,1",
        "1970-01-01 00:00:01.5000001,1,1",
        "1970-01-01 00:00:03.0000000,1,1",
    ]
    export_trace("azure", trace_of(arrival_ns=[0, 1_500_000_001]), out, force=True)
    assert out.read_text().splitlines()[1:] == [
        "1970-01-01 00:00:00.000000000,1,1",
        "1970-01-01 00:00:01.500000001,1,1",
    ]


def test_what_has_no_place_is_said(trace_of, tmp_path):
    trace = trace_of(arrival_ns=[0, 1], user=["a", None], request_id=["0", "1"], priority=[1, 2])
    remarks = export_trace("azure", trace, tmp_path / "out.csv")
    assert remarks[1:] == ["left out: user, priority (the format has no place for them)"]
    remarks = export_trace("azure", trace_of(arrival_ns=[0], request_id=["a"]), tmp_path / "other.csv")
    assert remarks[1:] == ["left out: request_id (the format has no place for it)"]


@pytest.mark.parametrize("start", ["tomorrow", "", "9999-01-01 00:00:00", "1600-01-01 00:00:00"])
def test_a_start_that_is_no_time_is_refused(start, trace_of, tmp_path):
    with pytest.raises(ExperimentError, match=r"start: .* is not a time such as"):
        export_trace("azure", trace_of(arrival_ns=[0]), tmp_path / "out.csv", start=start)


def test_a_start_from_which_the_trace_would_leave_64_bits_is_refused(trace_of, tmp_path):
    trace = trace_of(arrival_s=[0, 180 * 365 * 86_400])
    with pytest.raises(ExperimentError, match="from 2100-01-01 00:00:00 on, the trace would end after the year 2262"):
        export_trace("azure", trace, tmp_path / "out.csv", start="2100-01-01 00:00:00")
    assert list(tmp_path.glob("*out*")) == []


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 10**18), min_size=1, max_size=5),
    st.sampled_from(["1970-01-01 00:00:00", "1969-12-31T23:59:59.999999999Z", "2024-02-29 12:00:00.000000050+09:00"]),
)
def test_there_and_back_is_the_same_trace(gaps, start):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "trace.parquet"
        arrival = pl.Series(gaps).sort() - min(gaps)
        pl.DataFrame(
            {"arrival_ns": arrival, "prompt_tokens": range(1, len(gaps) + 1), "output_tokens": [7] * len(gaps)}
        ).write_parquet(file)
        trace = read_trace(file)
        export_trace("azure", trace, Path(folder) / "out.csv", start=start)
        again = import_trace("azure", Path(folder) / "out.csv")
        assert again.frame.equals(trace.frame)

"""Writing: what is read back is what was written, nothing is overwritten unasked, and nothing is left half-written."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from replay.errors import OutputError
from replay.traces.reading import read_trace
from replay.traces.table import SCHEMA, Trace
from replay.traces.writing import check_target, write_trace

TEXT = st.none() | st.text(st.characters(codec="utf-8"), max_size=8)
ROW = st.fixed_dictionaries(
    {
        "arrival": st.integers(0, 2**62),
        "prompt_tokens": st.integers(33, 2**31 - 1),
        "output_tokens": st.integers(1, 50),
        "user": TEXT,
        "session": st.just("s"),
        "think_time_ms": st.none() | st.floats(0, 1e9),
        "priority": st.none() | st.integers(-(2**63), 2**63 - 1),
        "deadline_ms": st.none() | st.floats(0.001, 1e9),
        "slo": TEXT,
        "max_tokens": st.none() | st.integers(50, 99),
        "prefix_hashes": st.none() | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
        "prompt": TEXT,
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("written")


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(ROW, min_size=1, max_size=6), scope=st.sampled_from(["global", "session"]))
def test_a_trace_that_is_written_is_read_back_as_it_was(folder, rows, scope):
    rows = sorted(rows, key=lambda row: row["arrival"])
    rows = [{**row, "request_id": f"id {n}", "turn": n, "prompt_token_ids": None} for n, row in enumerate(rows)]
    frame = pl.DataFrame(rows, schema=SCHEMA).with_columns(pl.col("arrival") - pl.col("arrival").first())
    hashed = frame["prefix_hashes"].is_not_null().any()
    trace = Trace(
        name="again",
        path=folder / "again.parquet",
        rows=frame.lazy(),
        block_size=16 if hashed else None,
        hash_scope=scope if hashed else "global",
        history=["made up"],
    )
    write_trace(trace, trace.path, force=True)
    again = read_trace(trace.path)
    assert_frame_equal(again.frame, trace.frame)
    alike = {"rows": trace.rows, "rows_read": 0}
    assert replace(again, sha256="", notes=[], **alike) == replace(trace, **alike)


def test_the_file_has_durations_and_only_the_columns_of_which_something_is_known(trace_of, tmp_path):
    trace = trace_of(metadata={"block_size": "4"}, arrival_s=[0, 1], user=["a", None], prefix_hashes=[[7], None])
    trace.history.append("made up")
    write_trace(trace, tmp_path / "out.parquet")
    assert pl.read_parquet_schema(tmp_path / "out.parquet") == {
        "arrival": pl.Duration("ns"),
        "prompt_tokens": pl.Int64,
        "output_tokens": pl.Int64,
        "user": pl.String,
        "prefix_hashes": pl.List(pl.Int64),
    }
    metadata = pl.read_parquet_metadata(tmp_path / "out.parquet")
    assert (metadata["block_size"], metadata["hash_scope"]) == ("4", "global")
    assert json.loads(metadata["history"]) == ["made up"]


def test_a_file_that_is_there_stays_unless_forced(trace_of, tmp_path):
    trace = trace_of(arrival_s=[0])
    out = tmp_path / "out.parquet"
    out.write_text("precious")
    with pytest.raises(OutputError, match=r"out\.parquet: is there already; give another name, or --force"):
        write_trace(trace, out)
    assert out.read_text() == "precious"
    write_trace(trace, out, force=True)
    assert read_trace(out).frame.height == 1


def test_places_that_cannot_be_written_to_are_refused_before_the_work(tmp_path):
    with pytest.raises(OutputError, match="is a folder; name a file"):
        check_target(tmp_path, force=True)
    with pytest.raises(OutputError, match="there is no folder"):
        check_target(tmp_path / "absent" / "out.parquet", force=False)
    with pytest.raises(OutputError, match="name is too long"):
        check_target(tmp_path / ("x" * 256), force=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="there is no folder"):
        check_target(tmp_path / "file" / "out.parquet", force=False)


def test_a_write_that_fails_leaves_nothing_behind(trace_of, tmp_path, monkeypatch):
    trace = trace_of(arrival_s=[0])
    out = tmp_path / "out.parquet"
    out.write_text("precious")
    before = sorted(tmp_path.iterdir())

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", full)
    with pytest.raises(OutputError, match=r"out\.parquet: cannot be written \(.*No space left on device"):
        write_trace(trace, out, force=True)
    assert sorted(tmp_path.iterdir()) == before
    assert out.read_text() == "precious"

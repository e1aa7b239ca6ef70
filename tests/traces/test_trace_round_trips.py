"""Arrivals and lengths go out and come in again, to the nanosecond, in every format that a trace can be written in."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.traces.formats import export_trace, exporting, import_trace
from replay.traces.table import SCHEMA, Trace

DAY = 24 * 3_600 * 10**9
LATEST = 300 * 365 * DAY  # nanoseconds
SETTINGS = {"azure": {"start": "1690-01-01 00:00:00"}}
gaps = st.one_of(st.integers(0, 2_000), st.integers(0, 30 * DAY), st.integers(0, LATEST // 3))
requests = st.lists(st.tuples(gaps, st.integers(1, 2**31 - 1)), min_size=2, max_size=4)


def trace_of(arrivals: list[int], tokens: list[int]) -> Trace:
    numbers = [str(row) for row in range(len(arrivals))]
    given = {"arrival": arrivals, "prompt_tokens": tokens, "output_tokens": tokens[::-1], "request_id": numbers}
    columns = [pl.Series(name, given.get(name, [None] * len(arrivals)), dtype) for name, dtype in SCHEMA.items()]
    return Trace("trace", Path("trace.parquet"), pl.DataFrame(columns).lazy())


@pytest.mark.parametrize("form", exporting())
@given(requests)
def test_what_is_written_is_read_again_or_it_is_said_to_be_rounded(form: str, rows: list[tuple[int, int]]) -> None:
    times = list(accumulate(gap for gap, _ in rows))
    arrivals, tokens = [time - times[0] for time in times], [each for _, each in rows]
    if arrivals[-1] > LATEST:
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        said = export_trace(form, trace_of(arrivals, tokens), path, **SETTINGS.get(form, {}))
        found = import_trace(form, path).frame
    assert found["prompt_tokens"].to_list() == tokens
    assert found["output_tokens"].to_list() == tokens[::-1]
    assert found["arrival"].to_list() == arrivals or any("rounded" in line for line in said)


@pytest.mark.parametrize(("form", "days"), [("vllm", 97), ("mooncake", 99), ("aiperf", 99)])
def test_arrivals_that_floats_do_not_hold_are_said_to_be_rounded(tmp_path: Path, form: str, days: int) -> None:
    fine, rounded = [0, days * DAY + 1], [0, (days + 1) * DAY + 1]
    assert export_trace(form, trace_of(fine, [1, 1]), tmp_path / "fine") == []
    assert import_trace(form, tmp_path / "fine").frame["arrival"].to_list() == fine
    said = export_trace(form, trace_of(rounded, [1, 1]), tmp_path / "rounded")
    assert len(said) == 1
    assert said[0].startswith(f"arrivals beyond {days} days are rounded")

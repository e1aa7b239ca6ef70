"""Starvation, inversion, deadlines and the reader's experience, worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import cell_entry, request_row, span_row, step_row, write_manifest, write_tables

from replay.metrics import Measured, measure
from replay.metrics.experience import experienced
from replay.results import read_run

READING = {"ttft_ms": 1000, "tpot_ms": None, "e2e_ms": None, "reading_tokens_per_s": 2.0}


def measured(
    folder: Path,
    rows: list[dict[str, Any]],
    spans: Sequence[dict[str, Any]] = (),
    cell: str = "continuous-fifo",
    **more: Any,
) -> Measured:
    write_tables(folder / "cells" / cell, rows, more.pop("steps", []), spans)
    return measure(read_run(write_manifest(folder, [cell_entry(cell)], rows=len(rows), **more)))


def value(found: Measured, metric: str, statistic: str = "value", by: str = "all", group: str = "all") -> Any:
    line = found.summary.filter(by=by, group=group, metric=metric, statistic=statistic)
    assert len(line) == 1, (metric, statistic, by, group)
    return line["value"].item()


def test_starvation_age_is_the_longest_time_without_a_token(tmp_path: Path) -> None:
    rows = [
        request_row(0, arrival=1.0, admitted=1.0, token_times=[3.0, 3.5]),  # until the first: 2 s
        request_row(1, admitted=0.0, token_times=[1.0, 5.0, 6.0]),  # from the first to the second: 4 s
        request_row(2, status="timed_out", ended=9.0),  # never: 9 s
        request_row(3, admitted=0.0, token_times=[1.0], status="cancelled", ended=8.0),  # after its only one: 7 s
        request_row(4, arrival=4.0, status="unfinished", ended=None),  # to the cell's end at 10
        request_row(5, arrival=99.0, submitted=None, status="unfinished", ended=None),  # never asked for
        request_row(6, status="skipped", ended=None),
        request_row(7, status="rejected", ended=0.0),
    ]
    found = measured(tmp_path, rows, steps=[step_row(0, 9.0, 10.0)])
    assert found.requests["starvation_age"].to_list() == [2, 4, 9, 7, 6, None, None, 0]
    assert value(found, "starvation_age", "max") == 9


def test_inversion_is_waiting_while_a_less_urgent_one_holds_a_slot(tmp_path: Path) -> None:
    # the urgent one (row 0) waits from 1 to 6; row 1 holds a slot from 0 to 2, row 2 (as urgent) from 2 to 4, row 3
    # from 4 to 8: 1 s and 2 s are inversion
    rows = [
        request_row(0, priority=2, arrival=1.0, admitted=6.0, token_times=[7.0]),
        request_row(1, priority=1, admitted=0.0, token_times=[2.0]),
        request_row(2, priority=2, admitted=2.0, token_times=[4.0]),
        request_row(3, priority=0, admitted=4.0, token_times=[8.0]),
    ]
    spans = [
        span_row(1, 0, "prefill", 0.0, 1.5),
        span_row(1, 0, "decode", 1.5, 2.0),
        span_row(2, 0, "decode", 2.0, 4.0),
        span_row(3, 0, "decode", 4.0, 8.0),
        span_row(0, 1, "decode", 6.0, 7.0),
    ]
    for each in spans:
        each["ending"] = "decode" if each["kind"] == "prefill" else "completed"
    found = measured(tmp_path, rows, spans)
    # row 1 waited for nobody; row 2 from 0 to 2 behind row 1; row 3 is the least urgent
    assert found.requests["inversion_time"].to_list() == [3, 0, 2, None]
    bare = measured(tmp_path / "bare", rows)  # without spans, from admission to the end: the same here
    assert bare.requests["inversion_time"].to_list() == [3, 0, 2, None]


def test_two_less_urgent_ones_at_once_count_once(tmp_path: Path) -> None:
    rows = [
        request_row(0, priority=1, admitted=5.0, token_times=[6.0]),
        request_row(1, priority=0, admitted=0.0, token_times=[3.0]),
        request_row(2, priority=0, admitted=0.0, token_times=[4.0]),
    ]
    assert measured(tmp_path, rows).requests["inversion_time"].to_list() == [4, None, None]


def test_waiting_after_an_eviction_is_waiting(tmp_path: Path) -> None:
    rows = [
        request_row(0, priority=1, admitted=0.0, token_times=[0.5, 6.0]),
        request_row(1, priority=0, admitted=0.0, token_times=[4.0]),
    ]
    spans = [
        span_row(0, 0, "prefill", 0.0, 0.5, ending="decode"),
        span_row(0, 0, "decode", 0.5, 1.0, ending="evicted"),
        span_row(0, 0, "prefill", 3.0, 5.0, ending="decode"),
        span_row(0, 0, "decode", 5.0, 6.0, ending="completed"),
        span_row(1, 1, "decode", 0.0, 4.0, ending="completed"),
    ]
    assert measured(tmp_path, rows, spans).requests["inversion_time"].to_list() == [2, None]


def test_one_that_was_put_out_for_good_waits_until_it_left(tmp_path: Path) -> None:
    rows = [
        request_row(0, priority=1, admitted=0.0, token_times=[0.5], status="timed_out", ended=7.0),
        request_row(1, priority=0, admitted=0.0, token_times=[4.0]),
    ]
    spans = [
        span_row(0, 0, "decode", 0.0, 1.0, ending="swapped"),
        span_row(1, 1, "decode", 0.0, 4.0, ending="completed"),
    ]
    assert measured(tmp_path, rows, spans).requests["inversion_time"].to_list() == [3, None]


def test_where_all_are_equally_urgent_nothing_is_inverted(tmp_path: Path) -> None:
    rows = [request_row(row, admitted=float(row), token_times=[row + 1.0]) for row in range(3)]
    found = measured(tmp_path, rows)
    assert found.requests["inversion_time"].to_list() == [None, None, None]
    assert value(found, "inversion_time", "mean") is None


def test_deadlines_are_the_requests_own(tmp_path: Path) -> None:
    rows = [
        request_row(0, deadline=1.0, slo="chat", token_times=[1.0]),  # just in time
        request_row(1, deadline=0.5, slo="chat", token_times=[0.6]),
        request_row(2, deadline=9.0, slo="batch", status="timed_out", ended=2.0),
        request_row(3, slo="batch", token_times=[50.0]),  # has none
        request_row(4, deadline=3.0, token_times=[2.0]),
    ]
    found = measured(tmp_path, rows)
    assert value(found, "deadline_met") == pytest.approx(2 / 4)
    assert value(found, "deadline_met", by="class", group="chat") == 0.5
    assert value(found, "deadline_met", by="class", group="batch") == 0
    assert value(found, "deadline_met", by="class", group="no class") == 1
    assert value(found, "goodput", by="class", group="chat") == 0  # 500 ms are the goal
    groups = found.summary.filter(by="class", metric="requests")["group"].to_list()
    assert groups == ["batch", "chat", "no class"]


def test_without_deadlines_none_was_met(tmp_path: Path) -> None:
    assert value(measured(tmp_path, [request_row(0, token_times=[1.0])]), "deadline_met") is None


def test_delivery_at_the_end_of_a_batch_is_when_the_client_sees_it(tmp_path: Path) -> None:
    rows = [request_row(0, deadline=1.0, token_times=[0.5, 0.6], finished=3.0)]
    assert value(measured(tmp_path, rows, cell="static-fifo"), "deadline_met") == 0


def test_experience_by_hand(tmp_path: Path) -> None:
    # expected at 1, 1.5, 2 s after due
    rows = [
        request_row(0, token_times=[1.0, 1.5, 2.0]),  # as expected
        request_row(1, token_times=[0.1, 0.2, 0.3]),  # sooner: no gain
        request_row(2, token_times=[2.0, 2.1, 2.2]),  # read at 2, 2.5, 3, each 1 s late; whole: 2 + 1.5 + 1
        request_row(3, token_times=[1.0, 1.5, 4.0]),  # the last 2 s late; whole: 3 + 2.5 + 2
        request_row(4, arrival=10.0, token_times=[13.0]),  # a single token is in time or it is not
    ]
    found = measured(tmp_path, rows, goals=READING)
    assert found.requests["qoe"].to_list() == pytest.approx([1, 1, 1 - 3 / 4.5, 1 - 2 / 7.5, 0])


def test_who_got_no_answer_had_no_good_experience(tmp_path: Path) -> None:
    rows = [
        request_row(0, token_times=[0.5], status="timed_out", ended=9.0),
        request_row(1, status="rejected", ended=0.0),
        request_row(2, status="unfinished", ended=None),
        request_row(3, status="skipped", ended=None),
    ]
    assert measured(tmp_path, rows, goals=READING).requests["qoe"].to_list() == [0, 0, None, None]


@pytest.mark.parametrize("missing", ["ttft_ms", "reading_tokens_per_s"])
def test_experience_needs_both_goals(tmp_path: Path, missing: str) -> None:
    found = measured(tmp_path, [request_row(0, token_times=[9.0])], goals=READING | {missing: None})
    assert found.requests["qoe"].to_list() == [None]
    assert value(found, "qoe", "mean") is None


def test_a_batch_that_is_delivered_together_is_read_from_then_on(tmp_path: Path) -> None:
    rows = [request_row(0, token_times=[0.5, 0.6, 0.7], finished=3.0)]
    found = measured(tmp_path, rows, cell="static-fifo", goals=READING)
    # read at 3, 3.5, 4: each 2 s late; expected 3 + 2.5 + 2 s before 4
    assert found.requests["qoe"].to_list() == [pytest.approx(1 - 6 / 7.5)]


@settings(max_examples=60)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=8), st.integers(1, 20))
def test_experience_is_the_area_between_the_two_deliveries(gaps: list[int], reading: int) -> None:
    times = np.cumsum(gaps) / 1000
    shown = [float(times[0])]
    for came in times[1:]:
        shown.append(max(float(came), shown[-1] + 1 / reading))
    expected = [1.0 + number / reading for number in range(len(times))]
    late = sum(max(is_ - should, 0.0) for is_, should in zip(shown, expected, strict=True))
    whole = sum(max(shown[-1] - should, 0.0) for should in expected)
    row = {
        "status": "completed",
        "due": 0.0,
        "finished": float(times[-1]),
        "token_times": times.tolist(),
        "padded": False,
        "goal_ttft": 1.0,
        "goal_reading": float(reading),
    }
    (found,) = experienced(pl.DataFrame([row]))
    assert 0 <= found <= 1
    assert found == pytest.approx(1 - late / whole if late > 1e-9 else 1.0, abs=1e-6)

"""What a trace says of its sessions, by hand: counts, gaps, turns at one instant, and how soon the last can be due."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.arrivals import Arrivals
from replay.traces.describing.describe import description_text
from replay.traces.describing.sessions import describe_sessions, last_due, sessions_of
from replay.traces.reading import read_trace
from replay.traces.turns import turns
from replay.traces.workload import workload


def test_sessions_are_counted_with_their_gaps_and_turns_that_come_together(trace_of):
    trace = trace_of(
        arrival_s=[0, 0, 1, 2, 2, 2, 3],
        session=["s", "s", "t", "t", "s", None, "u"],
        turn=[0, 1, 7, 9, 2, None, 4],
    )
    found = sessions_of(trace)
    assert (found.sessions, found.requests, found.with_gaps, found.at_once) == (3, 6, 1, 1)
    assert found.sentence(open_loop=False) == (
        "3 sessions with 6 requests, in a closed loop; 1 of the sessions lack numbers among their turns, and go on "
        "without those"
    )
    assert found.sentence(open_loop=True).startswith(
        "3 sessions with 6 requests, in an open loop: no turn waits for the one before, and 1 turn will come at the "
        "same instant as the one before"
    )


def test_turns_without_numbers_are_in_order_of_rows_and_have_no_gaps(trace_of):
    found = sessions_of(trace_of(arrival_s=[0, 0, 1], session=["s", "s", "t"]))
    assert (found.sessions, found.requests, found.with_gaps, found.at_once) == (2, 3, 0, 1)


def test_a_trace_without_sessions_has_none(trace_of):
    trace = trace_of(arrival_s=[0.0, 1.5])
    assert sessions_of(trace) is None
    assert last_due(trace, open_loop=False) == 1.5


@pytest.mark.parametrize(
    ("columns", "closed"),
    [
        # All at 0, half a second of thought before each: the third is due at 1 s or later. The first waits for nobody.
        ({"arrival_s": [0, 0, 0], "session": ["s"] * 3, "think_time_ms": [500.0] * 3}, 1.0),
        # The second arrives late and moves the third with it.
        ({"arrival_s": [0, 2, 2], "session": ["s"] * 3, "think_time_ms": [None, 500.0, 250.5]}, 2.2505),
        # Another session's turns, between them, do not.
        ({"arrival_s": [0, 0, 1], "session": ["s", "t", "s"], "think_time_ms": [900.0] * 3}, 1.0),
        ({"arrival_s": [0, 3, 0], "session": ["s", None, "s"], "think_time_ms": [None, None, 9000.0]}, 9.0),
        # Turn 2 stands before turn 1: turn 1 is due at 0, turn 2 a second later.
        ({"arrival_s": [0, 0], "session": ["s"] * 2, "turn": [2, 1], "think_time_ms": [1000.0, 7000.0]}, 1.0),
    ],
)
def test_the_last_can_be_due_no_sooner_than_think_times_allow(trace_of, columns: dict[str, Any], closed: float):
    trace = trace_of(**columns)
    assert last_due(trace, open_loop=False) == closed
    assert last_due(trace, open_loop=True) == max(columns["arrival_s"])


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3000), st.sampled_from([None, "s", "t"]), st.none() | st.integers(0, 2000)),
        min_size=1,
        max_size=12,
    )
)
def test_it_is_what_a_replay_whose_answers_take_no_time_comes_to(tmp_path_factory: pytest.TempPathFactory, rows):
    path = tmp_path_factory.mktemp("trace") / "trace.parquet"
    arrivals, sessions, thought = zip(*sorted(rows, key=lambda row: row[0]), strict=True)
    columns = {"arrival_ms": arrivals, "session": pl.Series(sessions, dtype=pl.String)}
    thoughts = pl.Series(thought, dtype=pl.Float64)
    ones = [1] * len(rows)
    pl.DataFrame(columns | {"think_time_ms": thoughts, "prompt_tokens": ones, "output_tokens": ones}).write_parquet(
        path
    )
    trace = read_trace(path)
    coming, last = Arrivals(workload(trace).requests), 0.0
    while (now := coming.next_due) is not None:
        for request in coming.take(now):
            last, request.status = max(last, request.due), "completed"
            coming.ended(request, request.due)
    assert last_due(trace, open_loop=False) == pytest.approx(last)


def test_what_a_closed_loop_waits_for_is_told_before_it_is_replayed(trace_of):
    trace = trace_of(
        arrival_s=[0, 0, 0, 1, 8],
        session=["s", "s", "s", "t", "t"],
        turn=[0, 1, 2, 0, 4],
        think_time_ms=[9_000.0, 1_000.0, 3_000.0, None, None],
    )
    found = describe_sessions(trace)
    assert found is not None
    assert found["think_time_s"] == {"p50": 2.0, "p90": 2.8, "p99": 2.98, "max": 3.0}  # not what the first turn has
    assert (found["later_turns"], found["later_turns_without_think_time"]) == (3, 1)
    assert (found["most_open"], found["with_gaps"], found["last_due_s"]) == (2, 1, 8.0)
    text = description_text(trace)
    assert "think times   p50 2 p90 2.8 p99 2.98 max 3 s; 1 later turn of 3 without" in text
    assert "the last request is due after 8 s, even if answers took no time" in text


def test_turns_are_the_same_in_one_part_and_in_many(trace_of):
    trace = trace_of(
        arrival_s=[0, 0, 1, 2, 2, 3, 4],
        session=["s", "t", "s", "u", None, "t", "s"],
        turn=[0, 3, 1, 0, None, 4, 2],
    )
    (whole,) = turns(trace.rows, "think_time_ms")
    parts = list(turns(trace.rows, "think_time_ms", most=2))
    assert len(parts) > 1
    assert pl.concat(parts).sort("session", "turn").equals(whole)
    assert all(part["session"].n_unique() == len(part["session"].rle()) for part in parts)


def test_skipped_rows_that_were_turns_are_told(trace_of):
    trace = trace_of(
        arrival_s=[0, 1, 2, 3, 4],
        session=["s", "s", "s", "t", None],
        turn=[0, 1, 2, 0, None],
        output_tokens=[1, 0, 1, 0, 0],
    )
    assert trace.frame["turn"].to_list() == [0, 2]
    assert trace.notes == ["2 rows skipped of 2 sessions, which go on without"]
    one = trace_of(arrival_s=[0, 1], session=["s", "s"], output_tokens=[0, 1])
    assert one.notes == ["1 row skipped of 1 session, which goes on without"]

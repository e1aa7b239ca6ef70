"""What is resident over time if nobody waits: by hand, and against the replay's own rule for sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.arrivals import Arrivals
from replay.clock import NANOSECONDS
from replay.request import Request
from replay.traces.describing.demand import occupancy
from replay.traces.describing.resident import paced, resident
from replay.traces.table import Trace

COLUMNS = {
    "arrival": pl.Int64,
    "prompt_tokens": pl.Int64,
    "output_tokens": pl.Int64,
    "session": pl.String,
    "turn": pl.Int64,
    "think_time_ms": pl.Float64,
}


def rows(*entries: tuple[Any, ...]) -> pl.LazyFrame:
    """Arrival in seconds, prompt, output; and session, turn, think time where there are any."""
    filled = [(int(entry[0] * NANOSECONDS), *entry[1:], *[None] * (6 - len(entry))) for entry in entries]
    return pl.LazyFrame(filled, schema=COLUMNS, orient="row")


def test_two_requests_that_overlap_by_hand() -> None:
    """First token after 2 s, every further one after 1 s, in spans of 1 s.

    The first, of 10 + 3 tokens: 10 until 2, there 11, growing to 13 at 4, its end. The second, of 100 + 1, from 3 to 5.
    """
    found = resident(rows((0, 10, 3), (3, 100, 1)), ttft=2, tpot=1, spans=5)
    assert found.width == 1
    assert found.mean_requests.tolist() == [1, 1, 1, 2, 1, 0]
    assert found.mean_tokens == pytest.approx([10, 10, 11.5, 112.5, 100, 0])
    # what is there as a span begins is found in it; just before 4 the first holds 13, and at 5 the second has its token
    assert (found.exact, found.end) == (True, 5)
    assert found.most_requests.tolist() == [1, 1, 1, 2, 2, 1]
    assert found.most_tokens == pytest.approx([10, 10, 12, 113, 113, 101])


def test_a_span_longer_than_a_request_has_its_share() -> None:
    """13 tokens-seconds of 4 s each, twice, in spans of 8 s: 10 x 2 s + 12 x 2 s = 44 token-seconds a request."""
    found = resident(rows((0, 10, 3), (12, 10, 3)), ttft=2, tpot=1, spans=2)
    assert found.width == 8
    assert found.mean_requests == pytest.approx([0.5, 0.5, 0])
    assert found.mean_tokens == pytest.approx([5.5, 5.5, 0])


def test_a_turn_is_due_its_think_time_after_the_end_of_the_turn_before() -> None:
    """Each takes 4 s: 0 to 4; 6 s later, to 14; the third arrives at 20, when the second is long over."""
    turns = [(0, 10, 3, "s", 1, None), (0, 10, 3, "s", 2, 6000.0), (20, 10, 3, "s", 3, 1000.0), (1, 7, 1)]
    found = paced(rows(*turns), ttft=2, tpot=1).sort("due").collect()
    assert [each / NANOSECONDS for each in found["due"]] == [0, 1, 10, 20]
    assert [each / NANOSECONDS for each in found["first"]] == [2, 3, 12, 22]
    assert [each / NANOSECONDS for each in found["end"]] == [4, 3, 14, 24]


ENTRY = st.tuples(
    st.integers(0, 30),
    st.integers(1, 9),
    st.integers(1, 6),
    st.sampled_from(["a", "b", None]),
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([None, 0.0, 500.0, 4000.0]),
)


@given(entries=st.lists(ENTRY, min_size=1, max_size=12))
def test_requests_are_due_as_in_a_replay(entries: list[tuple[Any, ...]]) -> None:
    entries.sort(key=lambda entry: entry[0])
    asked = [
        Request(
            row=row,
            request_id=str(row),
            arrival=entry[0],
            due=entry[0],
            prompt_tokens=entry[1],
            max_tokens=9,
            session=entry[3],
            turn=entry[4],
            think_time=(entry[5] or 0) / 1000,
        )
        for row, entry in enumerate(entries)
    ]
    arrivals, replayed = Arrivals(asked), []
    while (now := arrivals.next_due) is not None:
        for request in arrivals.take(now):
            request.status = "completed"
            end = request.due + 2 + 0.5 * (entries[request.row][2] - 1)
            replayed.append((request.due, end, request.prompt_tokens))
            arrivals.ended(request, end)
    for most in (1000, 3):  # all sessions at once, or some after others
        found = paced(rows(*entries), ttft=2, tpot=0.5, most_turns=most).select("due", "end", "prompt_tokens").collect()
        assert sorted(replayed) == sorted((due / 1e9, end / 1e9, prompt) for due, end, prompt in found.iter_rows())


@given(entries=st.lists(ENTRY, min_size=1, max_size=12), spans=st.integers(1, 40))
def test_the_spans_add_up_to_what_all_requests_hold(entries: list[tuple[Any, ...]], spans: int) -> None:
    found = resident(rows(*entries), ttft=2, tpot=0.5, spans=spans)
    seconds = [2 + 0.5 * (entry[2] - 1) for entry in entries]
    # a prompt for all of its time; an answer of n tokens grows from 1 to n within (n - 1) tpot
    answers = [0.5 * (entry[2] - 1) * (entry[2] + 1) / 2 for entry in entries]
    held = [entry[1] * (2 + 0.5 * (entry[2] - 1)) for entry in entries]
    assert np.sum(found.mean_requests) * found.width == pytest.approx(sum(seconds))
    assert np.sum(found.mean_tokens) * found.width == pytest.approx(sum(held) + sum(answers))
    assert (found.most_tokens >= found.mean_tokens - 1e-6).all()
    assert len(found.mean_tokens) <= spans + 1


@given(entries=st.lists(ENTRY, min_size=1, max_size=12), spans=st.integers(1, 40))
def test_the_most_is_the_peak_of_the_whole_and_looks_may_miss_it(entries: list[tuple[Any, ...]], spans: int) -> None:
    entries.sort(key=lambda entry: entry[0])
    asked = rows(*((entry[0] - entries[0][0], *entry[1:]) for entry in entries))
    found = resident(asked, ttft=2, tpot=0.5, spans=spans)
    over = occupancy(Trace("made", Path("made.parquet"), asked), ttft=2, tpot=0.5)
    assert found.most_tokens.max() == pytest.approx(over.peak_tokens)
    assert found.most_requests.max() == pytest.approx(over.peak_requests)
    looked = resident(asked, ttft=2, tpot=0.5, spans=spans, most_exact=0)
    assert not looked.exact
    assert looked.mean_tokens == pytest.approx(found.mean_tokens)
    assert (looked.most_tokens <= found.most_tokens + 1e-6).all()
    assert looked.most_tokens.max() >= over.mean_tokens - 1e-6

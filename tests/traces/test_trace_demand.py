"""What a trace asks of a pool, by hand and against a plain simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.traces.describing.demand import Together, larger_than, occupancy, request_tokens, together
from replay.traces.reading import read_trace
from replay.traces.table import Trace


def trace(tmp_path: Path, rows: list[dict[str, Any]]) -> Trace:
    pl.DataFrame(rows).write_parquet(tmp_path / "trace.parquet")
    return read_trace(tmp_path / "trace.parquet")


def row(arrival: float, prompt: int, output: int, **more: Any) -> dict[str, Any]:
    return {"arrival_s": arrival, "prompt_tokens": prompt, "output_tokens": output, **more}


def test_lengths_and_requests_at_once_by_hand(tmp_path: Path) -> None:
    found = trace(tmp_path, [row(0, 10, 7), row(1, 30, 2), row(2, 1, 1)])
    tokens = request_tokens(found)
    assert (tokens["mean"], tokens["p50"], tokens["max"]) == (17, 17, 32)
    # In blocks of 16: 17 tokens take 32, 32 take 32, 2 take 16.
    assert together(found, 16, (1, 2, 3, 4)) == [Together(1, 17, 32), Together(2, 34, 64), Together(3, 51, 80)]
    assert [larger_than(found, size) for size in (1, 16, 17, 32)] == [3, 2, 1, 0]


def test_two_requests_that_overlap_by_hand(tmp_path: Path) -> None:
    """First token after 2 s, every further one after 1 s: the first is there from 0 to 4, the second from 3 to 5."""
    over = occupancy(trace(tmp_path, [row(0, 10, 3), row(3, 100, 1)]), ttft=2, tpot=1)
    assert over.peak_requests == 2
    assert over.mean_requests == pytest.approx((4 + 2) / 5)
    # Just before 4 the first holds 10 + 3; the second its prompt alone, whose only token comes at 5, at its end.
    assert over.peak_tokens == pytest.approx(13 + 100)
    # Areas: 10 x 4 s of prompt, an answer that grows from 1 to 3 within 2 s, 100 x 2 s.
    assert over.mean_tokens == pytest.approx((40 + 4 + 200) / 5)


def test_who_ends_makes_room_for_who_comes(tmp_path: Path) -> None:
    over = occupancy(trace(tmp_path, [row(0, 10, 3), row(4, 10, 3)]), ttft=2, tpot=1)
    assert (over.peak_requests, over.peak_tokens) == (1, 13)


def test_turns_of_a_session_wait_for_the_one_before(tmp_path: Path) -> None:
    """Both arrive at 0, but the second turn is due 6 s after the first has ended at 4, and ends at 14."""
    turns = [row(0, 10, 3, session="s", turn=turn, think_time_ms=6000.0) for turn in (1, 2)]
    over = occupancy(trace(tmp_path, turns), ttft=2, tpot=1)
    assert over.peak_requests == 1
    assert over.mean_requests == pytest.approx(8 / 14)


@settings(max_examples=50)
@given(
    rows=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 9), st.integers(1, 6)), min_size=1, max_size=8),
    ttft=st.integers(1, 4),
    tpot=st.integers(1, 3),
)
def test_against_looking_at_every_instant(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]], ttft: int, tpot: int
) -> None:
    start = min(arrival for arrival, _, _ in rows)
    rows = sorted((arrival - start, prompt, output) for arrival, prompt, output in rows)
    found = trace(tmp_path_factory.mktemp("trace"), [row(*each) for each in rows])
    over = occupancy(found, ttft=ttft, tpot=tpot)

    def held(arrival: int, prompt: int, output: int, time: float) -> tuple[int, float]:
        first = arrival + ttft
        end = first + tpot * (output - 1)
        if not arrival <= time < end:
            return 0, 0.0
        return 1, prompt + (1 + (time - first) / tpot if time >= first - 1e-6 else 0)

    instants = [tick - before for tick in range(60) for before in (0, 1e-9)]
    sums = [[sum(part) for part in zip(*(held(*each, time) for each in rows), strict=True)] for time in instants]
    assert over.peak_requests == max(requests for requests, _ in sums)
    assert over.peak_tokens == pytest.approx(max(tokens for _, tokens in sums))
    assert over.mean_requests <= over.peak_requests
    assert over.mean_tokens <= over.peak_tokens + 1e-9

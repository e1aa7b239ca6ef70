"""When turns of sessions are due, to the nanosecond, whatever the mode and the policy; and who is skipped, and why."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.arrivals import Arrivals
from replay.clock import VirtualClock
from replay.contract.cases import MODES
from replay.contract.simulation import Replayed, request, simulate
from replay.executors.interface import CostModel
from replay.request import Request, Status
from replay.scheduler import Limits

COST = CostModel(fixed=0.0101234567, prefill=0.0001234567, decode=0.0004567891, context=0.0000012345)
POLICIES = ["fifo", "lifo", "sjf", "fair", "vtc", "priority_preempt", "mlfq", "autellix"]


def nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000_000)


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[Request], list[int]]:
    """Up to 14 requests, most of them turns of three sessions, with prompts that do not all fit a pool of 12 blocks."""
    row = st.tuples(
        st.sampled_from([None, "s", "s", "t", "u"]),
        st.integers(0, 400_000_000),  # nanoseconds from the arrival before
        st.integers(0, 150_000_001),  # nanoseconds of think time
        st.integers(1, 30) | st.just(60),  # prompt
        st.integers(1, 9),  # output
        st.sampled_from([None, "ada", "grace"]),
    )
    drawn = draw(st.lists(row, min_size=2, max_size=14))
    numbered, at_once = draw(st.booleans()), draw(st.booleans())
    arrival, turns, rows = 0, dict.fromkeys("stu", 0), []
    for place, (session, gap, think, prompt, _, user) in enumerate(drawn):
        arrival += 0 if at_once else gap
        turn = None
        if session is not None:
            turns[session] += 1
            turn = turns[session] if numbered else None
        seconds = {"think_time": think / 1_000_000_000}
        rows.append(request(place, arrival / 1_000_000_000, prompt, session=session, turn=turn, user=user, **seconds))
    return rows, [output for *_, output, _ in drawn]


def replay(drawn: tuple[list[Request], list[int]], mode: tuple[str, dict[str, Any]], **options: Any) -> Replayed:
    rows, outputs = drawn
    settings = {"blocks": 12, "block_size": 4, "cost": COST} | mode[1] | options
    return simulate(rows, outputs, mode=mode[0], **settings)


def by_session(rows: list[Request]) -> list[list[Request]]:
    """The turns of each session in order: here, that of rows. A request without one is a session alone."""
    found: dict[str, list[Request]] = {}
    for one in rows:
        found.setdefault(one.session or f"row {one.row}", []).append(one)
    return list(found.values())


limits = st.builds(Limits, st.integers(3, 9), st.none() | st.just(0.2), st.none() | st.just(0.5))


@settings(max_examples=150)
@given(
    drawn=sessions(),
    mode=st.sampled_from(MODES),
    policy=st.sampled_from(POLICIES),
    limits=limits,
    overlap=st.booleans(),
)
def test_a_turn_is_due_at_its_arrival_or_when_the_one_before_is_over_and_thought_about(
    drawn: tuple[list[Request], list[int]],
    mode: tuple[str, dict[str, Any]],
    policy: str,
    limits: Limits,
    overlap: bool,
) -> None:
    replayed = replay(drawn, mode, policy=policy, limits=limits, overlap=overlap)
    rows = replayed.objects
    assert sorted(replayed.requests["row"]) == list(range(len(rows))), "every request has one row"
    for turns in by_session(rows):
        before: Request | None = None
        failed: Request | None = None
        for turn in turns:
            if failed is not None:
                assert turn.status == "skipped"
                assert (turn.submitted, turn.admitted, turn.ended, turn.token_times) == (None, None, None, [])
                number = "an earlier turn" if failed.turn is None else f"turn {failed.turn}"
                how = str(failed.status).replace("_", " ")
                assert turn.reason == f"{number} of its session (row {failed.row}) was {how}"
                continue
            expected = nanoseconds(turn.arrival)
            if before is not None and before.finished is not None:
                expected = max(expected, nanoseconds(before.finished) + nanoseconds(turn.think_time))
            assert nanoseconds(turn.due) == expected
            assert turn.status in ("completed", "rejected", "timed_out")
            before, failed = turn, None if turn.status == "completed" else turn


@settings(max_examples=80)
@given(drawn=sessions(), mode=st.sampled_from(MODES), policy=st.sampled_from(POLICIES), limits=limits)
def test_in_an_open_loop_every_turn_is_due_at_its_arrival_and_nobody_is_skipped(
    drawn: tuple[list[Request], list[int]], mode: tuple[str, dict[str, Any]], policy: str, limits: Limits
) -> None:
    replayed = replay(drawn, mode, policy=policy, limits=limits, open_loop=True)
    assert [one.due for one in replayed.objects] == [one.arrival for one in replayed.objects]
    assert {one.status for one in replayed.objects} <= {"completed", "rejected", "timed_out"}
    assert len(replayed.requests) == len(replayed.objects)
    assert all(one.submitted is not None and one.submitted >= one.due for one in replayed.objects)


def test_think_times_alone_space_turns_that_all_carry_the_arrival_of_the_first() -> None:
    rows = [request(turn, 0.0, session="s", turn=turn, think_time=0.5) for turn in range(3)]
    replayed = simulate(rows, [2, 2, 2])  # 10 ms a token
    assert replayed.column("due") == [0.0, 0.52, 1.04]
    rows = [request(turn, 0.5 * turn, session="s", turn=turn, think_time=0.5) for turn in range(3)]
    assert simulate(rows, [2, 2, 2]).column("due") == [0.0, 0.52, 1.04], "arrivals that add the delays up say the same"


def test_without_think_times_a_turn_comes_at_its_arrival_or_at_once_after_a_late_answer() -> None:
    rows = [request(turn, 0.1 * turn, session="s", turn=turn) for turn in range(3)]
    assert simulate(rows, [2, 15, 2]).column("due") == [0.0, 0.1, 0.25]  # the second ends at 100 + 150 ms


@pytest.mark.parametrize(
    ("mode", "settings"),
    [
        ("static", {"batch_size": 1}),
        ("dynamic", {"max_batch_size": 1, "max_wait_ms": 0.0}),
        ("continuous", {"max_running": 1}),
    ],
)
@pytest.mark.parametrize("limits", [Limits(queue_timeout=0.05), Limits(timeout=0.09)])
def test_a_turn_that_times_out_ends_its_session_and_no_other(
    mode: str, settings: dict[str, Any], limits: Limits
) -> None:
    rows = [
        request(0, 0.0),
        request(1, 0.01, session="s", turn=4),
        request(2, 0.02, session="s", turn=5),
        request(3, 0.3, session="t", turn=0),
        request(4, 0.3, session="t", turn=1),
    ]
    replayed = simulate(rows, [9, 9, 1, 1, 1], mode=mode, limits=limits, **settings)
    assert replayed.column("status") == ["completed", "timed_out", "skipped", "completed", "completed"]
    assert replayed.column("reason")[2] == "turn 4 of its session (row 1) was timed out"
    free = simulate(
        [request(one.row, one.arrival, session=one.session, turn=one.turn) for one in rows],
        [9, 9, 1, 1, 1],
        mode=mode,
        limits=limits,
        open_loop=True,
        **settings,
    )
    assert free.column("status")[3:] == ["completed", "completed"]
    assert free.column("due")[2] == 0.02
    assert "skipped" not in free.column("status")


@pytest.mark.parametrize("status", ["rejected", "timed_out", "cancelled", "failed"])
def test_whatever_else_than_completed_gives_the_session_up(status: Status) -> None:
    rows = [request(row, 0.0, session="s", turn=row) for row in range(3)]
    arrivals = Arrivals(rows)
    (first,) = arrivals.take(0.0)
    first.status = status
    assert arrivals.ended(first, 1.0) == rows[1:]
    assert arrivals.exhausted


def test_the_first_turn_that_is_there_waits_for_none_that_is_not() -> None:
    # As a window or a limit leaves a session: its turns 3 and 5 are there, and neither the ones before nor turn 4.
    rows = [request(0, 1.0, session="s", turn=3, think_time=9.0), request(1, 1.0, session="s", turn=5, think_time=0.5)]
    assert simulate(rows, [1, 1]).column("due") == [1.0, 1.51]


def test_a_gap_of_years_is_one_step_of_a_virtual_clock() -> None:
    # Half a century, as where one row of a log has no time: floats are 238 ns apart there.
    looks = []
    rows = [request(0, 0.0, session="s"), request(1, 1_700_000_000.123456789, session="s", think_time=5.0)]

    def look(_: object, now: float) -> None:
        looks.append(now)
        assert len(looks) < 100

    replayed = simulate(rows, [1, 1], turn=look)
    assert replayed.column("status") == ["completed", "completed"]
    assert replayed.column("due")[1] == 1_700_000_000.123456789


@pytest.mark.parametrize("instant", [0.1, 12_345_678.9, 1_000_000_007.3, 5_123_456_789.123])
def test_who_sleeps_until_an_instant_finds_it_reached(instant: float) -> None:
    steps = [instant + place * math.ulp(instant) for place in range(300)]
    for wanted in steps:
        clock = VirtualClock()
        clock.sleep_until(wanted)
        assert wanted <= clock.now() <= wanted + max(2e-9, 2 * math.ulp(wanted))

"""The small parts: pool, clock, arrivals, the heap of those who wait, the registry."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.arrivals import Arrivals
from replay.clock import VirtualClock, WallClock, to_nanosecond
from replay.contract.simulation import request, simulate
from replay.errors import ExperimentError
from replay.pool import KVPool
from replay.registry import Registry
from replay.scheduler import Limits
from replay.scheduler.waiting import WaitingHeap
from replay.stopping import Stop


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=40))
def test_a_pool_gives_all_or_nothing_and_takes_everything_back(moves: list[tuple[int, int]]) -> None:
    pool = KVPool(blocks=10, block_size=4)
    for row, tokens in moves:
        before, held = pool.free_blocks, len(pool.tables.get(row, ()))
        if tokens == 0:
            assert pool.release(row) == held
        elif pool.grow(row, tokens):
            assert len(pool.tables[row]) == max(held, -(-tokens // 4))
        else:
            assert pool.free_blocks == before
            assert -(-tokens // 4) - held > before
        pool.check_integrity()
    for row in list(pool.tables):
        pool.release(row)
    assert pool.free_blocks == 10


def test_a_lost_block_is_noticed() -> None:
    pool = KVPool(blocks=2, block_size=4)
    pool.grow(0, 8)
    pool.tables[0].pop()
    with pytest.raises(AssertionError, match="lost or given out twice"):
        pool.check_integrity()


@given(st.floats(0, 1e6), st.floats(0, 1e3))
def test_a_virtual_clock_reaches_the_instant_it_was_asked_for(start: float, seconds: float) -> None:
    clock = VirtualClock()
    clock.sleep_until(start)
    instant = to_nanosecond(clock.now() + seconds)
    clock.sleep_until(instant)
    assert clock.now() == instant
    clock.sleep_until(0.0)
    assert clock.now() == instant, "it never goes back"


def test_a_wall_clock_sleeps_to_the_instant_and_wakes_when_it_is_stopped() -> None:
    stop = Stop()
    clock = WallClock(stop)
    clock.sleep_until(0.05)
    assert clock.now() >= 0.05
    threading.Timer(0.05, stop.set).start()
    before = time.monotonic()
    clock.sleep_until(1000.0)
    assert time.monotonic() - before < 500


def test_a_turn_is_due_when_the_turn_before_has_ended_and_its_user_has_thought() -> None:
    rows = [
        request(0, 0.0, session="s", turn=1),
        request(1, 0.1, session="s", turn=2, think_time=0.5),
        request(2, 5.0, session="s", turn=3),
    ]
    replayed = simulate(rows, [20, 1, 1])
    # The first turn ends at 200 ms, so the second is due at 700 ms, not at 100; the third at its arrival.
    assert replayed.column("due") == [0.0, 0.7, 5.0]
    assert replayed.column("arrival") == [0.0, 0.1, 5.0]
    assert replayed.column("finished") == [0.2, 0.71, 5.01]


def test_the_rest_of_a_session_is_skipped_when_a_turn_fails() -> None:
    rows = [request(0, 0.0, 999, session="s"), request(1, 0.1, session="s"), request(2, 0.2, session="other")]
    replayed = simulate(rows, [1, 1, 1], blocks=3)
    assert replayed.column("status") == ["rejected", "skipped", "completed"]
    assert replayed.column("reason")[1] == "an earlier turn of its session (row 0) was rejected"


def test_static_mode_does_not_wait_for_a_turn_that_cannot_come() -> None:
    rows = [request(0, 0.0, session="s"), request(1, 0.0, session="s")]
    replayed = simulate(rows, [2, 2], mode="static", batch_size=2)
    assert replayed.column("finished") == [0.02, 0.04]


def test_static_mode_waits_for_a_turn_that_comes_when_a_time_out_ends_the_batch() -> None:
    # The first two run from 20 ms on. The answer of the second, complete at 40 ms, is held until the first is cut at
    # 50 ms. So at 50 ms the next turn of its session is due, and makes a batch of two with the third, which waits.
    rows = [
        request(0, 0.0),
        request(1, 0.020, session="s"),
        request(2, 0.030),
        request(3, 0.020, session="s"),
    ]
    replayed = simulate(rows, [20, 2, 1, 1], mode="static", batch_size=2, limits=Limits(timeout=0.05))
    assert replayed.column("status") == ["timed_out", "completed", "completed", "completed"]
    assert replayed.column("due") == [0.0, 0.020, 0.030, 0.050]
    assert replayed.column("admitted") == [0.020, 0.020, 0.050, 0.050]


def test_turns_come_in_order_whatever_the_order_of_rows() -> None:
    arrivals = Arrivals([request(0, 0.0, session="s", turn=2), request(1, 0.0, session="s", turn=1)])
    assert [coming.row for coming in arrivals.take(0.0)] == [1]
    assert not arrivals.exhausted


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_the_heap_gives_those_who_wait_in_order(entries: list[tuple[int, int]]) -> None:
    heap = WaitingHeap[float]()
    rows = [request(row, due=float(due)) for row, (_, due) in enumerate(entries)]
    for one, (key, _) in zip(rows, entries, strict=True):
        one.state = "waiting"
        heap.push(one, key - 100)
        heap.push(one, key)  # in place of the key before
        heap.push(one, key)
    expected = sorted(rows, key=lambda one: (entries[one.row][0], one.due, one.row))
    for passed in range(2):
        seen = []
        while taken := heap.take():
            seen.append(taken[1])
        assert seen == expected[passed:]
        heap.restore()
        if seen:
            seen[0].state = "running"  # admitted: it is not given again


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    registry: Registry[int] = Registry("policy")
    registry.register("fifo")(1)
    with pytest.raises(ExperimentError, match=r"there is no policy 'fifi': did you mean 'fifo'\?"):
        registry["fifi"]
    with pytest.raises(ExperimentError, match="known: fifo"):
        registry["shortest"]
    for number in range(20):
        registry.register(f"p{number:02}")(number)
    with pytest.raises(ExperimentError, match=r"known: fifo, p00, .*, p10 and 9 more$"):
        registry["shortest"]
    with pytest.raises(ValueError, match="two policy entries"):
        registry.register("fifo")(2)

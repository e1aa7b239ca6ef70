"""Steps that overlap: the next is planned and handed over while the one before is computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from replay.clock import VirtualClock
from replay.contract.simulation import UNIT, CheckedExecutor, OverlappingExecutor, Replayed, request, simulate
from replay.errors import EngineError
from replay.executors.interface import Batch
from replay.pool import KVPool
from replay.predictors import Oracle
from replay.records import Records
from replay.replayer import Progress, Replayer
from replay.request import Request, Workload
from replay.scheduler import Limits, Ordered, Scheduler, Step, modes, policies
from replay.stopping import Stop


def replay(rows: list[Request], outputs: list[int], **settings: Any) -> Replayed:
    return simulate(rows, outputs, **{"overlap": True, "verify": True} | settings)


def test_a_request_that_reaches_its_length_makes_room_before_its_last_token_is_there() -> None:
    # One slot. The second step is planned at 0, when the first is handed over: it is counted as done, so the first
    # request, of one token, has left, and the second one gets its slot. It waits for the device until 10 ms.
    replayed = replay([request(0, 0.0), request(1, 0.0)], [1, 2], max_running=1)
    assert replayed.column("admitted") == [0.0, 0.0]
    assert replayed.column("token_times") == [[0.010], [0.020, 0.030]]
    assert replayed.column("finished") == [0.010, 0.030]
    assert replayed.steps["start"].to_list() == [0.0, 0.010, 0.020], "a step begins when the one before has ended"
    assert replayed.steps["end"].to_list() == [0.010, 0.020, 0.030]
    assert replayed.spans.select("row", "slot", "start", "end").rows() == [
        (0, 0, 0.0, 0.010),
        (1, 0, 0.010, 0.020),
        (1, 0, 0.020, 0.030),
    ]


def test_an_arrival_joins_the_step_after_the_next() -> None:
    # It comes at 5 ms. The step of 10 to 20 ms was planned at 0; the one of 20 to 30 ms is planned at 10 ms.
    replayed = replay([request(0, 0.0), request(1, 0.005)], [5, 1], max_running=2)
    assert replayed.column("admitted") == [0.0, 0.010]
    assert replayed.column("first_token") == [0.010, 0.030]
    assert replayed.column("lag") == [0.0, 0.0]


@dataclass
class Slow(Ordered):
    """First come, first served, after `seconds` of thought."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    seconds: float = 0.0

    def schedule(self, step: Step) -> None:
        self.clock.sleep_until(step.now + self.seconds)
        super().schedule(step)


@pytest.mark.parametrize(
    ("seconds", "overlap", "each"),
    [(0.004, False, 0.014), (0.004, True, 0.010), (0.025, False, 0.035), (0.025, True, 0.025)],
)
def test_a_step_takes_the_longer_of_planning_and_computing(seconds: float, overlap: bool, each: float) -> None:
    # 100 steps of 10 ms, each planned in `seconds`: one after the other, or side by side but for the first plan.
    clock = VirtualClock()
    executor = (OverlappingExecutor if overlap else CheckedExecutor)(UNIT, clock)
    records = Records()
    policy = Slow(clock=clock, seconds=seconds)
    rows = [request(0, 0.0)]
    replayer = Replayer(
        workload=Workload(rows, [100]),
        executor=executor,
        clock=clock,
        policy=policy,
        mode=modes["continuous"](),
        pool=KVPool(100, 4),
        predictor=Oracle(),
        records=records,
    )
    assert replayer.run()
    assert rows[0].finished is not None
    assert rows[0].finished == pytest.approx(100 * each, abs=seconds + 0.010)
    steps = records.steps.take()
    assert steps is not None
    assert steps["planning"].to_pylist() == pytest.approx([seconds] * 100)
    starts, launches = steps["start"].to_pylist(), steps["launched"].to_pylist()
    exposed = [launched - start for start, launched in zip(starts, launches, strict=True)]
    assert exposed == pytest.approx([seconds] + [0.0 if overlap else seconds] * 99)


def test_a_time_out_waits_for_the_step_that_is_under_way() -> None:
    # Both have 45 ms. At 50 ms the second has its last token, and the sixth step is under way, planned at 40 ms: when
    # it has ended, at 60 ms, the first is cut.
    rows = [request(0, 0.0), request(1, 0.0)]
    replayed = replay(rows, [9, 5], limits=Limits(timeout=0.045), max_running=2)
    assert replayed.column("status") == ["timed_out", "completed"]
    assert replayed.column("ended") == [0.060, 0.050]
    assert replayed.column("generated_tokens") == [6, 5]


@pytest.mark.parametrize("limits", [Limits(), Limits(queue_timeout=0.05)])
def test_time_outs_of_those_who_wait_hold_no_step_up(limits: Limits) -> None:
    # 20 steps of 10 ms, each planned in 4 ms beside the one before; the others wait for the only slot, some in vain.
    clock = VirtualClock()
    rows = [request(0, 0.0), *(request(row, 0.01 * row) for row in range(1, 12))]
    records = Records()
    replayer = Replayer(
        workload=Workload(rows, [20, *[1] * 11]),
        executor=OverlappingExecutor(UNIT, clock),
        clock=clock,
        policy=Slow(clock=clock, seconds=0.004),
        mode=modes["continuous"](max_running=1),
        pool=KVPool(100, 4),
        predictor=Oracle(),
        records=records,
        limits=limits,
    )
    assert replayer.run()
    assert rows[0].finished == pytest.approx(0.204)
    assert [row.status for row in rows].count("timed_out") == (0 if limits.queue_timeout is None else 11)


def test_a_session_goes_on_when_the_turn_before_was_delivered() -> None:
    # Static mode with batches of two: the second turn comes when the first has ended, so the batch waits for it.
    rows = [request(0, 0.0, session="s"), request(1, 0.0, session="s"), request(2, 0.0), request(3, 0.0)]
    replayed = replay(rows, [2, 2, 2, 2], mode="static", batch_size=2)
    assert replayed.column("due") == [0.0, 0.020, 0.0, 0.0]
    assert replayed.column("admitted") == [0.0, 0.020, 0.0, 0.020]
    assert replayed.column("finished") == [0.020, 0.040, 0.020, 0.040]


def test_padded_batches_overlap_too() -> None:
    rows = [request(row, 0.0, 3) for row in range(4)]
    one_by_one = simulate([request(row, 0.0, 3) for row in range(4)], [2, 4, 1, 3], mode="static", batch_size=2)
    overlapping = replay(rows, [2, 4, 1, 3], mode="static", batch_size=2)
    for column in ("token_times", "finished", "generated_tokens"):
        assert overlapping.column(column) == one_by_one.column(column)
    assert overlapping.steps.drop("start", "launched").equals(one_by_one.steps.drop("start", "launched"))
    assert overlapping.spans.equals(one_by_one.spans)


def test_whoever_is_evicted_meanwhile_still_gets_the_token_that_is_under_way() -> None:
    # Four blocks of one token: at the third step both need a third block. It is planned while the second is computed.
    rows = [request(0, 0.0, 1), request(1, 0.0, 1)]
    replayed = replay(rows, [3, 3], max_running=2, blocks=4, block_size=1)
    assert replayed.column("evictions") == [0, 1]
    assert replayed.column("token_times") == [[0.01, 0.02, 0.03], [0.01, 0.02, 0.04]]
    assert replayed.spans.filter(row=1).select("kind", "first_step", "last_step", "ending").rows() == [
        ("prefill", 0, 0, "decode"),
        ("decode", 1, 1, "evicted"),
        ("prefill", 3, 3, "completed"),
    ]


def stopped_replay(overlap: bool, fault: Exception | None = None) -> tuple[Replayer, Records, list[Request]]:
    """Three requests of 9 tokens, stopped (or struck by a fault) in the fourth turn of the loop."""
    clock, stop, records, turns = VirtualClock(), Stop(), Records(), 0

    def watch(progress: Progress) -> None:
        nonlocal turns
        turns += 1
        if turns == 4:
            if fault is not None:
                raise fault
            stop.set()

    rows = [request(row, 0.0) for row in range(3)]
    replayer = Replayer(
        workload=Workload(rows, [9, 4, 9]),
        executor=(OverlappingExecutor if overlap else CheckedExecutor)(UNIT, clock),
        clock=clock,
        policy=policies["fifo"](),
        mode=modes["continuous"](max_running=3),
        pool=KVPool(100, 4),
        predictor=Oracle(),
        records=records,
        stop=stop,
        watch=watch,
    )
    return replayer, records, rows


def test_a_stop_waits_for_the_step_that_is_under_way() -> None:
    replayer, records, rows = stopped_replay(overlap=True)
    assert not replayer.run()
    assert [one.status for one in rows] == ["unfinished", "completed", "unfinished"]
    assert [len(one.token_times) for one in rows] == [one.generated for one in rows] == [4, 4, 4]
    assert len(records.steps) == 4
    assert replayer.scheduler.state.pool.free_blocks == 100


def test_after_a_fault_only_what_was_computed_counts() -> None:
    replayer, records, rows = stopped_replay(overlap=True, fault=EngineError("the device is gone"))
    with pytest.raises(EngineError):
        replayer.run()
    replayer.abandon("the cell failed")
    assert [one.status for one in rows] == ["unfinished"] * 3, "of the fourth step nothing is known"
    assert [len(one.token_times) for one in rows] == [one.generated for one in rows] == [3, 3, 3]
    assert len(records.steps) == 3
    spans = records.spans.take()
    assert spans is not None
    assert sum(spans["tokens"].to_pylist()) == 9
    assert replayer.scheduler.state.pool.free_blocks == 100


@dataclass
class Shedder(Ordered):
    """In its third plan evicts the first request and turns it away, and in the next one too; notes the answers."""

    plans: int = field(default=-1, init=False)
    answers: list[bool] = field(default_factory=list, init=False)

    def schedule(self, step: Step) -> None:
        self.plans += 1
        if self.plans == 2:
            first = step.running[0]
            self.answers += [step.evict(first), step.reject(first, "no room")]
        elif self.plans == 3:
            self.answers += [step.reject(one, "no room") for one in list(step.waiting)]
        super().schedule(step)


def test_who_has_a_token_under_way_is_turned_away_when_it_has_come() -> None:
    # The third plan is made at 10 ms, while the second step computes the second token of both. It comes at 20 ms, and
    # the fourth plan turns the first away then.
    policy = Shedder()
    replayed = replay([request(0, 0.0), request(1, 0.0)], [9, 4], policy=policy, max_running=2)
    assert policy.answers == [True, False, True]
    assert replayed.column("status") == ["rejected", "completed"]
    assert replayed.column("token_times")[0] == [0.010, 0.020]
    assert (replayed.column("generated_tokens")[0], replayed.column("ended")[0]) == (2, 0.020)


def test_nobody_who_runs_is_cancelled_in_the_middle_of_a_step() -> None:
    rows = [request(0, 0.0), request(1, 0.0)]
    scheduler = Scheduler(
        policy=policies["fifo"](),
        mode=modes["continuous"](max_running=1),
        pool=KVPool(10, 4),
        output_tokens=[2, 2],
        predictor=Oracle(),
        cost=UNIT,
        records=Records(),
    )
    batch = scheduler.plan(0.0, rows)
    assert batch is not None
    scheduler.advance(batch)
    assert scheduler.cancel(rows[1], 0.0), "it waits, and may go"
    assert not scheduler.cancel(rows[0], 0.0)
    scheduler.complete(batch, 0.0, 0.010)
    assert scheduler.cancel(rows[0], 0.010)
    assert not scheduler.cancel(rows[0], 0.010), "it is over"
    assert [one.status for one in rows] == ["cancelled", "cancelled"]
    assert scheduler.idle


class Talker(OverlappingExecutor):
    """Samples token 7 for the third token of every answer, else 0."""

    def collect(self) -> list[int]:
        batch = self.batches[self.collected]
        self.collected += 1
        super().collect()
        return [7 if len(share.request.token_times) == 2 else 0 for share in batch.shares if share.samples]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.collected = 0


@pytest.mark.parametrize(("end_ids", "tokens", "finished"), [((), [5, 2, 4], 0.05), ({7}, [3, 2, 3], 0.03)])
@pytest.mark.parametrize(("mode", "settings"), [("continuous", {"max_running": 3}), ("static", {"batch_size": 3})])
def test_a_token_that_ends_answers_ends_them_and_nothing_overlaps_then(
    mode: str, settings: dict[str, Any], end_ids: set[int], tokens: list[int], finished: float
) -> None:
    clock = VirtualClock()
    executor = Talker(UNIT, clock)
    rows = [request(row, 0.0) for row in range(3)]
    under_way: list[int] = []

    def check(batch: Batch) -> None:
        under_way.append(len(executor.batches) - executor.collected)

    executor.check = check
    replayer = Replayer(
        workload=Workload(rows, [5, 2, 4]),
        executor=executor,
        clock=clock,
        policy=policies["fifo"](),
        mode=modes[mode](**settings),
        pool=KVPool(100, 4),
        predictor=Oracle(),
        records=Records(),
        end_ids=end_ids,
    )
    assert replayer.run()
    assert [one.generated for one in rows] == tokens
    assert [one.status for one in rows] == ["completed"] * 3
    assert rows[0].finished == finished
    assert max(under_way) == (0 if end_ids else 1)
    replayer.scheduler.check_integrity()
    assert replayer.scheduler.idle


def test_what_a_stopped_answer_takes_alone_is_counted_to_its_end() -> None:
    # Alone a request gives a token every 10 ms; those of 5 and 4 tokens stop at their third.
    clock, records = VirtualClock(), Records()
    replayer = Replayer(
        workload=Workload([request(row, 0.0) for row in range(3)], [5, 2, 4]),
        executor=Talker(UNIT, clock),
        clock=clock,
        policy=policies["fifo"](),
        mode=modes["continuous"](max_running=3),
        pool=KVPool(100, 4),
        predictor=Oracle(),
        records=records,
        end_ids={7},
    )
    assert replayer.run()
    table = records.requests.take()
    assert table is not None
    found = dict(zip(table["row"].to_pylist(), table["alone"].to_pylist(), strict=True))
    assert found == pytest.approx({0: 0.03, 1: 0.02, 2: 0.03})


def test_both_time_outs_of_one_who_waits_may_be_over_at_once() -> None:
    # The fourth is urgent and overtakes the third, which has run out of both of its times while the fourth runs.
    rows = [request(row, due, priority=priority) for row, (due, priority) in enumerate([(0.0, 0)] * 3 + [(0.005, 1)])]
    limits = Limits(queue_timeout=0.02, timeout=0.02)
    replayed = replay(rows, [1, 1, 1, 1], policy="priority", limits=limits, mode="static", batch_size=1)
    assert replayed.column("status") == ["completed", "completed", "timed_out", "completed"]
    assert replayed.column("ended") == [0.010, 0.020, 0.020, 0.030]

"""What protects an engine: requests that never fit, full queues, time-outs, cancellation, and pausing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from replay.clock import VirtualClock
from replay.contract.simulation import UNIT, request, simulate
from replay.errors import EngineError
from replay.executors.interface import Batch, CostModel
from replay.executors.simulated import SimulatedExecutor
from replay.pool import KVPool
from replay.predictors import Oracle
from replay.records import Records
from replay.request import Request, Workload
from replay.scheduler import Limits, Ordered, Policy, Scheduler, Step, modes, policies

EVERY_MODE: list[tuple[str, dict[str, Any]]] = [
    ("static", {"batch_size": 2}),
    ("dynamic", {"max_batch_size": 2}),
    ("continuous", {"max_running": 2}),
    ("continuous", {"max_running": 2, "prefill": "whole"}),
]


@pytest.mark.parametrize("policy", list(policies))
@pytest.mark.parametrize(("mode", "settings"), EVERY_MODE)
def test_a_request_that_never_fits_is_rejected_at_its_arrival(policy: str, mode: str, settings: dict[str, Any]) -> None:
    rows = [request(0, 0.0, 32, max_tokens=8), request(1, 0.0, 200, max_tokens=8), request(2, 0.0, 32, max_tokens=8)]
    replayed = simulate(rows, [8, 8, 8], mode=mode, policy=policy, blocks=10, block_size=16, **settings)
    assert replayed.column("status") == ["completed", "rejected", "completed"]
    assert replayed.column("reason")[1] == "208 tokens need 13 KV blocks; the pool has 10"
    assert replayed.column("ended")[1] == 0.0


def test_a_full_queue_rejects() -> None:
    rows = [request(row, 0.0) for row in range(5)]
    replayed = simulate(rows, [1] * 5, max_running=1, limits=Limits(max_waiting=3))
    assert replayed.column("status") == ["completed"] * 3 + ["rejected"] * 2
    assert replayed.column("reason")[4] == "the queue is full: 3 wait"


def test_a_request_that_waits_too_long_times_out_and_one_that_runs_does_not() -> None:
    rows = [request(0, 0.0), request(1, 0.0)]
    replayed = simulate(rows, [10, 1], max_running=1, limits=Limits(queue_timeout=0.035))
    assert replayed.column("status") == ["completed", "timed_out"]
    assert replayed.column("ended") == [0.100, 0.040]  # found at the first step boundary after 35 ms
    assert replayed.column("reason")[1] == "not admitted within 0.035 s"


@pytest.mark.parametrize(("mode", "settings"), EVERY_MODE)
def test_a_request_that_takes_too_long_is_cut_and_its_blocks_come_back(mode: str, settings: dict[str, Any]) -> None:
    rows = [request(0, 0.0), request(1, 0.0)]
    replayed = simulate(rows, [10, 3], mode=mode, limits=Limits(timeout=0.05), **settings)
    assert replayed.column("status") == ["timed_out", "completed"]
    assert replayed.column("generated_tokens") == [5, 3]
    # The client of the first has gone at 50 ms. In static and dynamic mode the batch then holds nothing but answers.
    assert replayed.column("finished")[1] == (0.030 if mode == "continuous" else 0.050)
    assert replayed.column("last_token") == [None, 0.030]


def test_an_idle_engine_wakes_for_a_time_out() -> None:
    replayed = simulate(
        [request(0, 0.0), request(1, 9.0)], [1, 1], mode="static", batch_size=2, limits=Limits(timeout=0.5)
    )
    assert replayed.column("status") == ["timed_out", "completed"]
    assert replayed.column("ended")[0] == 0.5


def scheduler_for(outputs: list[int], blocks: int, mode: str = "continuous", **settings: Any) -> Scheduler:
    return Scheduler(
        policy=policies["fifo"](),
        mode=modes[mode](**settings),
        pool=KVPool(blocks, 4),
        output_tokens=outputs,
        predictor=Oracle(),
        cost=UNIT,
        records=Records(),
    )


def compute(scheduler: Scheduler, batch: Batch, now: float) -> None:
    """The step takes 100 ms."""
    scheduler.advance(batch)
    scheduler.complete(batch, now, now + 0.1)


@pytest.mark.parametrize(("mode", "settings"), EVERY_MODE[1:])
def test_cancel_at_any_moment_gives_every_block_back(mode: str, settings: dict[str, Any]) -> None:
    # Fifty times: one is cancelled while it waits, one in the middle of its prefill, one in the middle of its answer.
    outputs = [6] * 150 + [1]
    scheduler = scheduler_for(outputs, 20, mode, **settings | {"token_budget": 5} if mode == "continuous" else settings)
    now, row = 0.0, 0
    for _ in range(50):
        three = [request(row + each, now, prompt, max_tokens=6) for each, prompt in enumerate((2, 9, 7))]
        row += 3
        steps = {id(three[0]): 3, id(three[1]): 1, id(three[2]): 0}  # cancelled after so many steps
        arrivals: list[Request] = three
        for step in range(4):
            now += 0.1
            batch = scheduler.plan(now, arrivals)
            arrivals = []
            if batch is not None:
                compute(scheduler, batch, now)
            scheduler.check_integrity()
            for each in three:
                if steps[id(each)] == step:
                    scheduler.cancel(each, now, reason="client gone")
                    scheduler.check_integrity()
        now += 0.1
        while (batch := scheduler.plan(now)) is not None:
            compute(scheduler, batch, now)
            now += 0.2
        assert scheduler.idle
        assert scheduler.state.pool.free_blocks == 20
    everything = request(row, now, 79, max_tokens=1)  # a last request that needs the whole pool
    batch = scheduler.plan(now, [everything])
    while batch is not None:
        compute(scheduler, batch, now)
        now += 0.2
        batch = scheduler.plan(now)
    assert everything.status == "completed"


@dataclass
class Alternate(Policy):
    """Admits everybody and lets residents run in turn: who ran in the last step is paused in this one."""

    ran: set[int] = field(default_factory=set, init=False)

    def schedule(self, step: Step) -> None:
        for waiting in list(step.waiting):
            step.run(waiting)
        for running in step.running:
            if running.row not in self.ran and running.row not in step.shares:
                step.run(running)
        if not step.shares:
            for running in step.running:
                step.run(running)
        self.ran = set(step.shares)


def test_a_paused_request_keeps_its_blocks_and_loses_no_token() -> None:
    replayed = simulate([request(0, 0.0, 2), request(1, 0.010, 2)], [3, 3], policy=Alternate(), max_running=2)
    assert replayed.column("generated_tokens") == [3, 3]
    assert replayed.column("evictions") == [0, 0]
    assert replayed.column("recomputed_tokens") == [0, 0]
    assert replayed.spans.filter(kind="paused").height >= 2
    assert replayed.requests.sort("row")["token_times"].to_list() == [[0.01, 0.03, 0.05], [0.02, 0.04, 0.06]]


@dataclass
class Lazy(Policy):
    """Never does anything."""

    def schedule(self, step: Step) -> None:
        pass


@dataclass
class Evictor(Ordered):
    """Evicts all but the first in every third step, and notes what the step allowed."""

    allowed: list[bool] = field(default_factory=list, init=False)

    def schedule(self, step: Step) -> None:
        super().schedule(step)
        if step.number % 3 == 2:
            before = step.budget
            for running in step.running[1:]:
                tokens = step.scheduled(running)
                self.allowed.append(step.evict(running))
                if self.allowed[-1]:
                    assert step.scheduled(running) == 0, "its tokens of this step are undone"
                    assert not step.run(running), "and it does not come back in the same step"
                    before = None if before is None else before + tokens
                    assert step.budget == before, "the budget is given back"


def test_a_policy_that_makes_no_progress_is_named_with_the_request_that_suffers() -> None:
    with pytest.raises(EngineError, match=r"no progress: request '0' \(row 0\) .* policy Lazy"):
        simulate([request(0, 0.0)], [1], policy=Lazy())


def test_evicting_everybody_again_and_again_loses_no_token() -> None:
    policy = Evictor()
    replayed = simulate([request(row, 0.0, 3) for row in range(3)], [7, 7, 7], policy=policy, max_running=3)
    assert replayed.column("generated_tokens") == [7, 7, 7]
    assert all(policy.allowed)
    assert sum(replayed.column("evictions")) >= 5


def test_a_batch_to_its_end_evicts_nobody() -> None:
    policy = Evictor()
    simulate([request(row, 0.0, 3) for row in range(3)], [7, 7, 7], mode="static", batch_size=3, policy=policy)
    assert policy.allowed
    assert not any(policy.allowed)


@dataclass
class Shedder(Ordered):
    """Turns away whoever has a prompt over 10 tokens."""

    def schedule(self, step: Step) -> None:
        for waiting in list(step.waiting):
            if waiting.prompt_tokens > 10:
                step.reject(waiting, "too long for me")
        super().schedule(step)


def test_a_policy_may_shed_load() -> None:
    replayed = simulate([request(0, 0.0, 5), request(1, 0.0, 50)], [1, 1], policy=Shedder())
    assert replayed.column("status") == ["completed", "rejected"]
    assert replayed.column("reason")[1] == "too long for me"


def test_a_stopped_replay_gives_everybody_a_row() -> None:
    from replay.replayer import Progress, Replayer
    from replay.stopping import Stop

    stop = Stop()
    clock = VirtualClock()
    records = Records()

    def watch(progress: Progress) -> None:
        if progress.ended >= 3:
            stop.set()

    replayer = Replayer(
        workload=Workload([request(row, row / 100, session="s" if row > 7 else None) for row in range(10)], [3] * 10),
        executor=SimulatedExecutor(UNIT, clock),
        clock=clock,
        policy=policies["fifo"](),
        mode=modes["continuous"](max_running=1),
        pool=KVPool(100, 4),
        predictor=Oracle(),
        records=records,
        stop=stop,
        watch=watch,
    )
    assert not replayer.run()
    table = records.requests.take()
    assert table is not None
    statuses = dict(zip(table["row"].to_pylist(), table["status"].to_pylist(), strict=True))
    assert statuses == {row: "completed" if row < 3 else "unfinished" for row in range(10)}
    assert replayer.scheduler.state.pool.free_blocks == 100


def test_those_who_time_out_leave_the_queue_before_others_are_turned_away() -> None:
    rows = [request(0, 0.0), request(1, 0.001), request(2, 0.05)]
    limits = Limits(max_waiting=1, queue_timeout=0.02)
    replayed = simulate(rows, [9, 1, 1], max_running=1, limits=limits, cost=CostModel(fixed=0.05))
    assert replayed.column("status") == ["completed", "timed_out", "timed_out"]  # the third waits, and is not rejected


def test_an_answer_that_is_held_past_its_time_out_was_not_delivered_in_time() -> None:
    rows = [request(0, 0.0), request(1, 0.0)]
    replayed = simulate(rows, [2, 14], mode="static", batch_size=2, limits=Limits(timeout=0.1))
    assert replayed.column("status") == ["timed_out", "timed_out"]
    assert replayed.column("generated_tokens") == [2, 10]


def test_a_small_budget_on_a_small_pool_does_not_thrash() -> None:
    # Whoever joins finds room for all of its prompt and a block for each to grow: else chunks would be thrown away.
    rows = [request(row, 0.0, 100) for row in range(30)]
    replayed = simulate(rows, [60] * 30, blocks=40, max_running=16, token_budget=32)
    assert sum(replayed.column("recomputed_tokens")) < 30 * 160 / 4


@dataclass
class Undecided(Ordered):
    """Admits and evicts again in the same step, twice, and then makes up its mind."""

    times: int = 0

    def schedule(self, step: Step) -> None:
        super().schedule(step)
        if self.times < 2:
            self.times += 1
            for running in step.running:
                assert step.evict(running)
                assert running not in list(step.waiting)


def test_an_admission_that_is_undone_in_its_step_never_was() -> None:
    replayed = simulate([request(0, 0.0)], [2], policy=Undecided())
    assert replayed.column("evictions") == [0]
    assert replayed.steps["evicted"].sum() == 0
    assert replayed.steps["admitted"].to_list() == [1, 0]
    assert replayed.column("finished") == [0.02]


@dataclass
class Meddler(Ordered):
    """Calls on the step when its plan is made."""

    answers: list[bool] = field(default_factory=list, init=False)

    def on_tokens(self, request: Request, tokens: int, new: int, seconds: float, step: Step) -> None:
        self.answers += [step.evict(request), step.run(request), *(step.reject(one, "no") for one in step.waiting)]


def test_a_plan_that_is_made_cannot_be_changed() -> None:
    policy = Meddler()
    replayed = simulate([request(0, 0.0), request(1, 0.0)], [2, 2], policy=policy, max_running=1)
    assert replayed.column("status") == ["completed", "completed"]
    assert policy.answers
    assert not any(policy.answers)


@dataclass
class Sleeper(Ordered):
    """Starts nothing before `seconds` after a request was due, on purpose."""

    seconds: float = 0.2

    def schedule(self, step: Step) -> None:
        if any(step.now >= one.due + self.seconds for one in [*step.waiting, *step.running]):
            super().schedule(step)

    def wake(self, now: float) -> float | None:
        return 0.1 + self.seconds  # not a whole nanosecond: 0.30000000000000004


def test_a_policy_that_leaves_the_engine_idle_is_woken_when_it_wishes() -> None:
    replayed = simulate([request(0, 0.1)], [1], policy=Sleeper())
    assert replayed.column("admitted")[0] == pytest.approx(0.3)


def test_expected_tokens_are_always_more_than_generated() -> None:
    expected: list[tuple[int, float]] = []

    @dataclass
    class Curious(Ordered):
        def schedule(self, step: Step) -> None:
            expected.extend((one.generated, step.expected_tokens(one)) for one in step.running)
            super().schedule(step)

    simulate([request(0, 0.0, max_tokens=2)], [5], policy=Curious(), predictor="max_tokens")
    assert expected == [(1, 2), (2, 3), (3, 4), (4, 5)]


def test_user_mean_learns_from_answers_as_they_come() -> None:
    rows = [
        request(0, 0.0, user="a"),
        request(1, 0.01, user="b"),
        *(request(row, 0.2, user="ab"[row % 2]) for row in (2, 3)),
    ]
    replayed = simulate(rows, [8, 2, 8, 2], policy="sjf", predictor="user_mean", max_running=1)
    assert replayed.requests.sort("admitted")["row"].to_list() == [0, 1, 3, 2]


def test_a_request_beyond_the_models_context_is_rejected() -> None:
    scheduler = scheduler_for([9], 20)
    scheduler._max_context = 10
    asked = request(0, 0.0, 5, max_tokens=9)
    assert scheduler.plan(0.0, [asked]) is None
    assert (asked.status, asked.reason) == ("rejected", "14 tokens are more than the model's context of 10")


@dataclass
class Choosy(Ordered):
    """Rejects the first request in a step of its own, and runs nobody in it."""

    done: bool = field(default=False, init=False)

    def schedule(self, step: Step) -> None:
        if not self.done:
            self.done = True
            step.reject(next(iter(step.waiting)), "not you")
        else:
            super().schedule(step)


def test_a_plan_that_only_rejects_is_followed_by_another() -> None:
    replayed = simulate([request(0, 0.0), request(1, 0.0)], [1, 1], policy=Choosy())
    assert replayed.column("status") == ["rejected", "completed"]


@dataclass
class Reviver(Ordered):
    """Tries to run the others when somebody is over."""

    def on_finish(self, request: Request, step: Step) -> None:
        for running in step.running:
            step.run(running)


def test_who_has_run_out_of_time_computes_nothing_more() -> None:
    rows = [request(row, 0.0) for row in range(3)]
    replayed = simulate(rows, [9, 9, 9], policy=Reviver(), limits=Limits(timeout=0.045), max_running=3)
    assert replayed.column("status") == ["timed_out"] * 3
    assert replayed.column("generated_tokens") == [5, 5, 5]
    assert [len(times) for times in replayed.column("token_times")] == [5, 5, 5]

"""`Ranked` by hand and by chance: who is paused, who is evicted and for what, and that it always comes to an end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings

from replay.contract.cases import MODES, Case, Engine, cases, check_outcome, engines, replay
from replay.contract.simulation import Replayed, request, simulate
from replay.executors.interface import Batch, CostModel
from replay.replayer import Replayer
from replay.scheduler import Ranked, Request, Step
from replay.scheduler.batch_size import Load, Outcome
from replay.scheduler.waiting import WaitingHeap

CONTINUOUS = [mode for mode in MODES if mode[0] == "continuous"]


@dataclass
class ByUrgency(Ranked):
    """The most urgent first."""

    def key(self, request: Request, step: Step) -> tuple[float, ...]:
        return (-request.urgency,)


def rows_by_step(replayed: Replayed) -> list[list[int]]:
    """Who got tokens in each step, the best first."""
    return [[share.request.row for share in batch.shares] for batch in replayed.batches]


def at_most(steps: int) -> Callable[[Replayer, Batch], None]:
    """A check that stops a replay which does not come to an end."""
    seen = []

    def check(replayer: Replayer, batch: Batch) -> None:
        seen.append(batch)
        assert len(seen) <= steps, "it does not come to an end"

    return check


def later(**settings: Any) -> Replayed:
    """One of urgency 0 that comes at 0, and one of urgency 1 that comes a step later."""
    rows = [request(0, 0.000, priority=0), request(1, 0.010, priority=1)]
    return simulate(rows, [3, 2], policy=ByUrgency(), **settings)


def test_where_only_tokens_are_short_the_worse_is_paused_and_keeps_its_blocks() -> None:
    replayed = later(max_running=2, max_scheduled=1)
    assert rows_by_step(replayed) == [[0], [1], [1], [0], [0]]
    assert replayed.column("token_times") == [[0.010, 0.040, 0.050], [0.020, 0.030]]
    assert replayed.column("evictions") == [0, 0]
    assert replayed.spans.filter(row=0)["kind"].to_list() == ["prefill", "paused", "decode"]


def test_where_slots_are_short_the_worse_is_evicted_and_computed_again() -> None:
    replayed = later(max_running=1)
    assert rows_by_step(replayed) == [[0], [1], [1], [0], [0]]
    assert replayed.column("token_times") == [[0.010, 0.040, 0.050], [0.020, 0.030]]
    assert replayed.column("evictions") == [1, 0]
    assert replayed.column("recomputed_tokens") == [1, 0], "its prompt; its first token was not computed yet"


def test_where_host_memory_has_room_the_worse_is_swapped() -> None:
    # A block is copied out in the second step and back in the fourth: 1 ms each.
    replayed = later(max_running=1, host_blocks=4, cost=CostModel(fixed=0.010, swap=0.001))
    assert replayed.column("token_times") == [[0.010, 0.042, 0.052], [0.021, 0.031]]
    assert replayed.column("swaps") == [1, 0]
    assert replayed.column("recomputed_tokens") == [0, 0]


def test_where_blocks_are_short_the_worse_is_evicted_though_slots_are_free() -> None:
    # The first holds 2 of 4 blocks of a token. The second needs 2, and one must be left for the first to grow.
    rows = [request(0, 0.000, 2, priority=0), request(1, 0.010, 2, priority=1)]
    replayed = simulate(rows, [2, 2], policy=ByUrgency(), blocks=4, block_size=1, max_running=4)
    assert rows_by_step(replayed) == [[0], [1], [1], [0]]
    assert replayed.column("evictions") == [1, 0]
    assert replayed.steps["bound"].to_list() == ["nothing", "blocks", "blocks", "nothing"]


def test_the_worst_is_evicted_and_no_more_than_needed() -> None:
    rows = [request(row, 0.0, priority=priority) for row, priority in enumerate([1, 0, 2])]
    rows.append(request(3, 0.010, priority=3))
    replayed = simulate(rows, [4, 4, 4, 1], policy=ByUrgency(), max_running=3)
    assert replayed.column("evictions") == [0, 1, 0, 0]
    assert rows_by_step(replayed)[:2] == [[2, 0, 1], [3, 2, 0]]


def test_equal_keys_never_evict_each_other() -> None:
    rows = [request(row, row / 100) for row in range(3)]
    replayed = simulate(rows, [3, 1, 2], policy=ByUrgency(), max_running=1)
    assert rows_by_step(replayed) == [[0], [0], [0], [1], [2], [2]]
    assert replayed.column("evictions") == [0, 0, 0]


@dataclass
class Sinking(Ranked):
    """Whoever has a token yields to those who have none."""

    def key(self, request: Request, step: Step) -> tuple[float, ...]:
        return (min(request.generated, 1),)


def test_nor_when_they_have_become_equal_and_the_one_who_waits_was_due_before() -> None:
    rows = [request(0, 0.000), request(1, 0.010)]
    replayed = simulate(rows, [3, 2], policy=Sinking(), max_running=1)
    assert rows_by_step(replayed) == [[0], [1], [1], [0], [0]]
    assert replayed.column("evictions") == [1, 0]


def test_nobody_joins_for_a_part_of_its_prompt() -> None:
    # The first holds 4 of 10 blocks. The second could begin with 4 of its 6 tokens in the step's budget of 5, but needs
    # 6 blocks, and one left for the first: it joins when the first has ended.
    rows = [request(0, 0.000, 4, priority=1), request(1, 0.010, 6, priority=0)]
    settings = {"blocks": 10, "block_size": 1, "max_running": 2, "token_budget": 5}
    replayed = simulate(rows, [3, 1], policy=ByUrgency(), **settings)
    assert rows_by_step(replayed) == [[0], [0], [0], [1], [1]]
    assert replayed.column("admitted") == [0.000, 0.030]


def test_nobody_is_evicted_where_that_would_not_be_enough() -> None:
    # The third needs 5 blocks of 10. The first holds 6 and is just as urgent; the second, which is less so, holds 1.
    rows = [request(0, 0.0, 6, priority=1), request(1, 0.0, 1, priority=0), request(2, 0.010, 5, priority=1)]
    replayed = simulate(rows, [2, 2, 1], policy=ByUrgency(), blocks=10, block_size=1, max_running=4)
    assert replayed.column("evictions") == [0, 0, 0]
    assert rows_by_step(replayed) == [[0, 1], [0, 1], [2]]


def test_what_a_loser_still_needs_for_its_prompt_counts_as_freed() -> None:
    # 5 tokens a step. The first has 5 of its 9 tokens, and 4 blocks that are free are meant for it. The second needs 8
    # of the 10 blocks: once the first is evicted, all are free.
    rows = [request(0, 0.000, 9, priority=0), request(1, 0.010, 8, priority=1)]
    settings = {"blocks": 10, "block_size": 1, "max_running": 2, "token_budget": 5}
    replayed = simulate(rows, [1, 1], policy=ByUrgency(), **settings)
    assert rows_by_step(replayed) == [[0], [1], [1], [0], [0]]


def test_nobody_joins_who_is_worse_than_one_evicted_in_the_same_step() -> None:
    # 6 blocks of a token. In the third step the first needs a fourth block, and the second gives up its three: two stay
    # free, and would be enough for the third and the first's next. But the second was there before it.
    rows = [request(0, 0.0, 2, priority=2), request(1, 0.0, 3, priority=1), request(2, 0.010, 1, priority=0)]
    replayed = simulate(rows, [4, 3, 1], policy=ByUrgency(), blocks=6, block_size=1, max_running=3)
    assert rows_by_step(replayed) == [[0, 1], [0], [0], [0], [1, 2], [1]]
    assert replayed.column("evictions") == [0, 1, 0]


def test_where_nobody_can_grow_the_best_goes_on_at_the_cost_of_the_worst() -> None:
    # Equal keys, 6 blocks of a token: at their third token all need a third block. The worst gives its two up; when the
    # best has ended, the one between goes on, and then the worst.
    rows = [request(row) for row in range(3)]
    replayed = simulate(rows, [3, 3, 3], policy=ByUrgency(), blocks=6, block_size=1, max_running=3)
    assert replayed.column("token_times") == [[0.010, 0.020, end] for end in (0.030, 0.040, 0.050)]
    assert replayed.column("evictions") == [0, 0, 1]


@dataclass
class Pinning(ByUrgency):
    def pinned(self, request: Request, step: Step) -> bool:
        return request.row == 1


def test_where_nobody_can_grow_a_pinned_one_goes_before_the_best() -> None:
    replayed = simulate([request(0), request(1)], [3, 3], policy=Pinning(), blocks=4, block_size=1, max_running=2)
    assert replayed.column("token_times") == [[0.010, 0.020, 0.040], [0.010, 0.020, 0.030]]
    assert replayed.column("evictions") == [1, 0]


def test_a_pinned_one_is_not_evicted_for_a_better_one() -> None:
    rows = [request(0, 0.010, priority=2), request(1, 0.000, priority=1)]
    replayed = simulate(rows, [1, 3], policy=Pinning(), max_running=1)
    assert rows_by_step(replayed) == [[1], [1], [1], [0]]


def test_static_mode_takes_the_best_into_its_batch() -> None:
    rows = [request(row, 0.0, priority=priority) for row, priority in enumerate([0, 2, 1, 2])]
    replayed = simulate(rows, [1] * 4, mode="static", batch_size=2, policy=ByUrgency())
    assert rows_by_step(replayed) == [[1, 3], [2, 0]]


@dataclass
class Bypassing(ByUrgency):
    bypass = 1


def test_as_many_as_the_policy_says_may_be_skipped_because_they_do_not_fit() -> None:
    # The second joins and ends in the second step. The third, with its prompt of 7, fits when the first has ended.
    for policy, admitted in ((ByUrgency(), 0.050), (Bypassing(), 0.030)):
        rows = [request(row, row / 100, prompt, priority=-row) for row, prompt in enumerate([4, 6, 7, 1])]
        replayed = simulate(rows, [5, 1, 1, 1], policy=policy, blocks=12, block_size=1, max_running=4)
        assert replayed.column("admitted") == [0.000, 0.010, 0.050, admitted]


@dataclass
class Turning(Ranked):
    """Whose turn it is changes with every step: the worst that a key can do."""

    dynamic = True

    def key(self, request: Request, step: Step) -> tuple[float, ...]:
        return ((request.row + step.number) % 2,)


def test_who_was_evicted_is_safe_until_it_is_further_than_it_was() -> None:
    # One slot, two tokens a step, prompts of 4. The first loses its 2 tokens in the second step. Back in the third, it
    # has 2 to make good, and stays until it is further than that: it answers. The second has lost its own 2 but once.
    rows = [request(0, 0.0, 4), request(1, 0.0, 4)]
    settings = {"max_running": 1, "token_budget": 2, "check": at_most(20)}
    replayed = simulate(rows, [1, 1], policy=Turning(), **settings)
    assert rows_by_step(replayed) == [[0], [1], [0], [0], [1], [1]]
    assert replayed.column("evictions") == [1, 1]


@dataclass
class Whim(Ranked):
    """Keys by chance, others in each step."""

    dynamic = True
    bypass = 2

    def key(self, request: Request, step: Step) -> tuple[float, ...]:
        return (step.random.randint(0, 3),)

    def pinned(self, request: Request, step: Step) -> bool:
        return step.random.random() < 0.1


@pytest.mark.parametrize("mode", CONTINUOUS, ids=str)
@settings(max_examples=80)
@given(case=cases(), engine=engines)
def test_whatever_the_keys_every_eviction_is_paid_for_by_progress(
    mode: tuple[str, dict[str, Any]], case: Case, engine: Engine
) -> None:
    replayed = replay(case, Whim(), mode, engine)
    check_outcome(case, replayed)
    for row, evictions in enumerate(replayed.column("evictions")):
        assert evictions <= case.prompts[row] + case.outputs[row], "once for each token at most"


class CountingHeap(WaitingHeap[tuple[float, ...]]):
    """Counts how often it was asked for the next."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def take(self) -> Any:
        self.taken += 1
        return super().take()


@dataclass
class Counting(ByUrgency):
    """Counts the keys and the waiting requests that it looks at."""

    asked: int = field(default=0, init=False)
    looked: list[int] = field(default_factory=list, init=False)

    def key(self, request: Request, step: Step) -> tuple[float, ...]:
        self.asked += 1
        return super().key(request, step)

    def schedule(self, step: Step) -> None:
        before = self.asked
        self._queue = self._queue if isinstance(self._queue, CountingHeap) else CountingHeap()
        taken = self._queue.taken
        super().schedule(step)
        self.looked.append(self.asked - before + self._queue.taken - taken)


@pytest.mark.parametrize("short", [{"max_running": 2}, {"blocks": 6}, {"max_scheduled": 2, "max_running": 4}], ids=str)
def test_a_step_looks_at_few_of_many_who_wait(short: dict[str, int]) -> None:
    policy = Counting()
    policy._queue = CountingHeap()
    rows = [request(row, 0.0, 3, priority=row % 5) for row in range(400)]
    simulate(rows, [3] * 400, policy=policy, **{"blocks": 100, "block_size": 1, "max_running": 20} | short)
    assert max(policy.looked) <= 30, "of 400"


def test_a_request_that_comes_back_to_a_key_is_met_once() -> None:
    heap: WaitingHeap[float] = WaitingHeap()
    one, other = request(0, state="waiting"), request(1, state="waiting")
    for key in (5.0, 1.0, 5.0):
        heap.push(one, key)
    heap.push(other, 7.0)
    for _ in range(2):
        met = []
        while taken := heap.take():
            met.append(taken[1].row)
        assert met == [0, 1]
        heap.restore()


def test_keys_that_move_leave_no_more_behind_than_there_are_requests() -> None:
    heap: WaitingHeap[float] = WaitingHeap()
    waiting = [request(row, state="waiting") for row in range(100)]
    for turn in range(50):
        for one in waiting:
            heap.push(one, float(one.row + 1000 * (turn % 7)))
    assert len(heap._heap) <= 64 + 2 * 100
    met = []
    while taken := heap.take():
        met.append(taken[1].row)
    assert met == list(range(100))


@dataclass
class Moving(ByUrgency):
    """Turns the order round in step 2."""

    turned: bool = field(default=False, init=False)

    def key(self, request: Request, step: Step) -> tuple[float, ...]:
        return (request.urgency if self.turned else -request.urgency,)

    def schedule(self, step: Step) -> None:
        if step.number == 2:
            self.turned = True
            self.rerank(step)
        super().schedule(step)


def test_a_rule_that_moves_many_says_so() -> None:
    rows = [request(row, 0.0, priority=priority) for row, priority in enumerate([9, 1, 3, 2])]
    replayed = simulate(rows, [2, 1, 1, 1], policy=Moving(), max_running=1)
    assert rows_by_step(replayed) == [[0], [0], [1], [3], [2]]


@dataclass
class Shrinking:
    """A batch size of 4, and of 1 from the third step on."""

    largest: int = 4
    asked: int = 0

    def size(self, load: Load) -> int:
        self.asked += 1
        return 4 if self.asked < 3 else 1

    def observe(self, outcome: Outcome) -> None:
        pass


@pytest.mark.parametrize("policy", [ByUrgency(), "priority_preempt"])
def test_nobody_is_evicted_where_the_batch_size_has_shrunk_by_more_than_the_worse(policy: Ranked | str) -> None:
    # Four run where one may now. Two of them are less urgent than the newcomer: they would leave for nothing.
    rows = [request(row, 0.0, priority=priority) for row, priority in enumerate([5, 5, 1, 1])]
    rows.append(request(4, 0.015, priority=3))
    replayed = simulate(rows, [6, 6, 6, 6, 1], policy=policy, max_running=Shrinking())
    assert replayed.column("evictions") == [0, 0, 0, 0, 0]
    assert replayed.column("admitted")[-1] == 0.060


@dataclass
class Looking(ByUrgency):
    """Counts whom it is asked about as one who may be evicted."""

    looks: int = 0

    def pinned(self, request: Request, step: Step) -> bool:
        self.looks += 1
        return False


def test_who_joins_looks_at_no_more_than_it_evicts() -> None:
    rows = [request(row, 0.0, priority=0) for row in range(40)]
    rows += [request(row, 0.010, priority=1) for row in range(40, 80)]
    policy = Looking()
    replayed = simulate(rows, [2] * 80, policy=policy, max_running=40)
    assert sum(replayed.column("evictions")) == 40
    assert policy.looks <= 4 * 40  # the one that it evicts and the next, to see whether it is enough, and to evict

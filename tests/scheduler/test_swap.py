"""Swapping: tokens go to host memory and come back, and are not computed again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.contract.simulation import Replayed, request, simulate
from replay.executors.interface import CostModel
from replay.host_pool import HostPool
from replay.scheduler import Limits, Ordered, Request, Step

SWAP = CostModel(fixed=0.010, swap=0.001)  # a step of 10 ms, and 1 ms for each block copied


def replay(outputs: list[int], prompts: list[int] | None = None, **settings: Any) -> Replayed:
    """Requests that all come at 0, with blocks of one token."""
    rows = [request(row, 0.0, prompt) for row, prompt in enumerate(prompts or [1] * len(outputs))]
    return simulate(rows, outputs, **{"block_size": 1, "verify": True, "cost": SWAP} | settings)


def test_a_swapped_request_decodes_on_where_it_was() -> None:
    # As by recompute: four blocks of one token; at their third token both need a third block, and the newest gives
    # way: its 2 blocks are copied out in the third step (10 + 2 ms). In the fourth they come back, and it decodes.
    replayed = replay([3, 3], blocks=4, host_blocks=2, max_running=2)
    assert replayed.column("token_times") == [[0.010, 0.020, 0.032], [0.010, 0.020, 0.044]]
    assert replayed.column("evictions") == [0, 1]
    assert replayed.column("swaps") == [0, 1]
    assert replayed.column("recomputed_tokens") == [0, 0]
    assert replayed.steps["swapped_out"].to_list() == [0, 0, 2, 0]
    assert replayed.steps["swapped_in"].to_list() == [0, 0, 0, 2]
    assert replayed.steps["evicted"].to_list() == [0, 0, 1, 0]
    assert replayed.spans.filter(row=1)["kind"].to_list() == ["prefill", "decode", "decode"]
    assert replayed.spans.filter(row=1)["ending"].to_list() == ["decode", "swapped", "completed"]


def test_without_room_in_host_memory_it_is_computed_again() -> None:
    replayed = replay([3, 3], blocks=4, host_blocks=1, max_running=2)
    assert replayed.column("token_times") == [[0.010, 0.020, 0.030], [0.010, 0.020, 0.040]]
    assert replayed.column("swaps") == [0, 0]
    assert replayed.column("recomputed_tokens") == [0, 2]
    assert replayed.spans.filter(row=1)["ending"].to_list() == ["decode", "evicted", "completed"]


@dataclass
class Swapper(Ordered):
    """Evicts whom it is told in each step (row, how), before it runs the others; notes the answers."""

    script: dict[int, list[tuple[int, Any]]] = field(default_factory=dict)
    idle: tuple[int, ...] = ()  # plans, counted from 0, in which it then runs nobody
    answers: list[bool] = field(default_factory=list, init=False)
    plans: int = field(default=-1, init=False)

    def schedule(self, step: Step) -> None:
        self.plans += 1
        everybody = {one.row: one for one in step.running}
        for row, how in self.script.get(self.plans, []):
            self.answers.append(step.evict(everybody[row], how))
        if self.plans not in self.idle:
            super().schedule(step)


def test_a_policy_says_how() -> None:
    # Room for 2 host blocks: the first has 2 computed tokens in plan 2, the second 2 as well.
    policy = Swapper(script={2: [(0, "swap"), (1, "swap"), (1, "recompute")]})
    replayed = replay([4, 4], policy=policy, blocks=20, host_blocks=2, max_running=2)
    assert policy.answers == [True, False, True]
    assert replayed.column("swaps") == [1, 0]
    assert replayed.column("recomputed_tokens") == [0, 2]


@pytest.mark.parametrize(("how", "copied"), [(None, 0), ("swap", 4), ("recompute", 0)])
def test_what_others_hold_too_is_not_copied_unless_the_policy_says_so(how: Any, copied: int) -> None:
    # The second prompt shares three blocks of the first. Evicted in plan 2, with its 4 tokens computed, it finds all of
    # them again without a copy, and computes none twice.
    policy = Swapper(script={2: [(1, how)]})
    rows = [request(0, 0.0, 4), request(1, 0.005, 4)]
    settings = {"prompts": {0: [1, 2, 3, 4], 1: [1, 2, 3, 4]}, "prefix_cache": True, "block_size": 1}
    replayed = simulate(rows, [8, 4], policy=policy, blocks=40, host_blocks=20, verify=True, cost=SWAP, **settings)
    assert replayed.column("cached_tokens") == [0, 3]
    assert replayed.column("swaps") == [0, int(copied > 0)]
    assert replayed.steps["swapped_out"].sum() == copied
    assert replayed.column("recomputed_tokens") == [0, 0]


def test_recompute_is_possible_where_there_is_room_to_swap() -> None:
    policy = Swapper(script={2: [(0, "recompute")]})
    replayed = replay([4], policy=policy, host_blocks=9)
    assert replayed.column("swaps") == [0]
    assert replayed.column("recomputed_tokens") == [2]


def test_copies_of_a_step_without_a_batch_are_carried_by_the_next() -> None:
    # Plan 2 swaps out and runs nobody. Plan 3, at the same instant, lets it come back: both copies are in its batch.
    policy = Swapper(script={2: [(0, "swap")]}, idle=(2,))
    replayed = replay([4], policy=policy, host_blocks=2)
    assert replayed.steps["swapped_out"].to_list() == [0, 0, 2, 0]
    assert replayed.steps["swapped_in"].to_list() == [0, 0, 2, 0]
    assert replayed.column("token_times") == [[0.010, 0.020, 0.034, 0.044]]


@dataclass
class Undecided(Swapper):
    """Takes back in the same step whom it has swapped in, twice; `how` says in which way."""

    how: Any = None
    times: int = 2

    def schedule(self, step: Step) -> None:
        super().schedule(step)
        if self.plans >= 3 and self.times:
            self.times -= 1
            for running in step.running:
                self.answers.append(step.evict(running, self.how))


@pytest.mark.parametrize("how", [None, "swap"])
def test_who_is_swapped_in_and_evicted_in_one_step_keeps_its_copy(how: Any) -> None:
    policy = Undecided(script={2: [(0, "swap")]}, how=how)
    replayed = replay([4], policy=policy, host_blocks=2)
    assert policy.answers == [True, True, True]
    assert (replayed.column("evictions"), replayed.column("swaps")) == ([1], [1])
    assert replayed.steps["swapped_out"].sum() == replayed.steps["swapped_in"].sum() == 2


def test_or_loses_it_when_the_policy_wants_it_computed_again() -> None:
    policy = Undecided(script={2: [(0, "swap")]}, how="recompute", times=1)
    replayed = replay([4], policy=policy, host_blocks=2)
    assert replayed.steps["swapped_in"].sum() == 0
    assert replayed.column("recomputed_tokens") == [2]


def test_a_prompt_is_swapped_in_the_middle() -> None:
    # A prompt of 10 in chunks of 4: swapped out after 4, it goes on with the other 6.
    replayed = replay([1], [10], policy=Swapper(script={1: [(0, "swap")]}), host_blocks=4, token_budget=4)
    assert replayed.steps["prefill_tokens"].to_list() == [4, 4, 2]
    assert replayed.column("recomputed_tokens") == [0]


def test_who_has_computed_nothing_has_nothing_to_swap() -> None:
    @dataclass
    class Hasty(Ordered):
        done: bool = False

        def schedule(self, step: Step) -> None:
            super().schedule(step)
            if not self.done:
                self.done = True
                assert step.evict(step.running[0], "swap"), "its admission is undone"

    replayed = replay([2], policy=Hasty(), host_blocks=4)
    assert (replayed.column("evictions"), replayed.column("swaps")) == ([0], [0])
    assert replayed.steps["swapped_out"].sum() == 0


@dataclass
class NewestFirst(Swapper):
    """Whoever came last waits first."""

    def key(self, request: Request, step: Step) -> float:
        return -request.row


def test_a_swapped_request_that_runs_out_of_time_gives_its_host_blocks_back() -> None:
    # One slot. At 20 ms the first is swapped out for the second (2 of 2 host blocks), and at 50 ms it runs out of time.
    # When the third is swapped out, at its third token, there is room for its 2 blocks.
    rows = [request(0, 0.0), request(1, 0.020), request(2, 0.070)]
    replayed = simulate(
        rows,
        [9, 5, 3],
        policy=NewestFirst(script={2: [(0, "swap")], 9: [(2, "swap")]}),
        max_running=1,
        block_size=1,
        host_blocks=2,
        verify=True,
        limits=Limits(timeout=0.05),
    )
    assert replayed.column("status") == ["timed_out", "completed", "completed"]
    assert replayed.column("swaps") == [1, 0, 1]


def test_a_batch_to_its_end_swaps_nobody() -> None:
    policy = Swapper(script={1: [(0, "swap")]})
    simulate([request(0, 0.0)], [3], mode="static", batch_size=1, policy=policy, host_blocks=9)
    assert policy.answers == [False]


@dataclass
class Afterthought(Ordered):
    """Wants the second swapped out in its plans 3 and 4, after the others have got their tokens."""

    plans: int = field(default=-1, init=False)
    answers: list[bool] = field(default_factory=list, init=False)

    def schedule(self, step: Step) -> None:
        self.plans += 1
        if self.plans == 2:
            assert step.evict(step.running[0], "swap")
        super().schedule(step)
        if self.plans in (3, 4):
            self.answers.append(step.evict(next(one for one in step.running if one.row == 1), "swap"))


def test_host_blocks_that_are_copied_back_are_free_from_the_next_plan_on() -> None:
    # Four host blocks. The first leaves with 2 and comes back in plan 3, where the second has 3 tokens and finds the
    # other 2 blocks only: copies out come first. In plan 4 it has 4 tokens, and room.
    policy = Afterthought()
    replayed = replay([6, 6], policy=policy, blocks=20, host_blocks=4, max_running=2)
    assert policy.answers == [False, True]
    assert replayed.column("swaps") == [1, 1]
    assert replayed.steps["swapped_out"].to_list()[:6] == [0, 0, 2, 0, 4, 0]
    assert replayed.steps["swapped_in"].to_list()[:6] == [0, 0, 0, 2, 0, 4]


@given(st.lists(st.tuples(st.sampled_from(["out", "in", "stay", "release", "take"]), st.integers(0, 3)), max_size=40))
def test_host_blocks_are_never_lost(moves: list[tuple[str, int]]) -> None:
    pool = HostPool(6)
    back: list[int] = []  # rows that are on their way back
    for move, row in moves:
        if move == "out" and row not in pool.tables:
            free = pool.free_blocks
            assert pool.swap_out(row, [10 * row, 10 * row + 1]) == (free >= 2)
        elif move == "in" and row in pool.tables and row not in back:
            pool.swap_in(row, [100 + row, 200 + row, 300 + row])  # it has a block more by now
            back.append(row)
        elif move == "stay":
            assert pool.stay(row) == (row in back)
            back = [other for other in back if other != row]
        elif move == "release" and row not in back:
            blocks = len(held_by(pool).get(row, []))
            assert pool.release(row) == blocks
            assert row not in held_by(pool)
        elif move == "take":
            held = held_by(pool)
            out, into = pool.take_copies()
            assert len({host for _, host in out}) == len(out)
            assert into == [pair for row in back for pair in zip(held[row], (100 + row, 200 + row), strict=True)]
            assert not held_by(pool).keys() & set(back)
            back = []
        pool.check_integrity()
    pool.take_copies()
    for row in held_by(pool):
        pool.release(row)
    assert pool.free_blocks == 6


def held_by(pool: HostPool) -> dict[int, list[int]]:
    return {row: list(blocks) for row, blocks in pool.tables.items()}

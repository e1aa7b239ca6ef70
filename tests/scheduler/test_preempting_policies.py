"""The preempting policies and andes: their rules by hand, and the bounds that theory and their papers give them.

Unless said otherwise a step lasts 10 ms, a prompt is one token, and one request gets tokens in a step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from math import ceil
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from policies.andes import Andes
from policies.autellix import Autellix
from policies.fastserve import FastServe
from policies.ltr import Ltr
from policies.mlfq import Mlfq
from policies.priority_preempt import PriorityPreempt
from policies.trail import Trail
from replay.contract.cases import MODES, Case, cases, replay
from replay.contract.simulation import Replayed, request, simulate
from replay.executors.interface import Batch, CostModel
from replay.replayer import Replayer
from replay.scheduler import Levelled, Policy, Reader, Request, Step

Check = Callable[[Replayer, Batch], None]
CONTINUOUS = [mode for mode in MODES if mode[0] == "continuous"]
REGIMES: dict[str, dict[str, int]] = {  # one request gets tokens in a step; the others pause, are swapped or recomputed
    "pause": {"max_running": 100, "max_scheduled": 1},
    "swap": {"max_running": 1, "host_blocks": 1000},
    "recompute": {"max_running": 1},
}
jobs = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), min_size=1, max_size=7).map(sorted)  # steps


def run(
    jobs: Sequence[tuple[float, int]], policy: str | Policy, regime: str = "pause", check: Check | None = None
) -> Replayed:
    """Requests that come at a step and get so many tokens."""
    rows = [request(row, round(step / 100, 6)) for row, (step, _) in enumerate(jobs)]
    return simulate(rows, [size for _, size in jobs], policy=policy, check=check, **REGIMES[regime])


def turns(replayed: Replayed) -> list[int]:
    """Who got tokens, step by step, where that is one at a time."""
    assert all(len(batch.shares) == 1 for batch in replayed.batches)
    return [batch.shares[0].request.row for batch in replayed.batches]


def same(one: Replayed, other: Replayed) -> bool:
    """Whether two replays agree to the last digit."""
    return all(getattr(one, table).equals(getattr(other, table)) for table in ("requests", "steps", "spans"))


# --- priority_preempt


def urgent(regime: str, threshold: int = 0, *, low: int = 0, high: int = 1) -> list[int]:
    rows = [request(0, 0.000, priority=low), request(1, 0.010, priority=high), request(2, 0.005, priority=low)]
    policy = PriorityPreempt(threshold=threshold)
    return turns(
        simulate(rows, [3, 2, 1], policy=policy, max_running=1, **{"swap": {"host_blocks": 9}}.get(regime, {}))
    )


def test_the_more_urgent_takes_the_slot_of_one_that_runs_and_that_comes_back_in_its_place() -> None:
    for regime in ("swap", "recompute"):
        assert urgent(regime) == [0, 1, 1, 0, 0, 2]
    assert urgent("swap", low=1, high=1) == [0, 0, 0, 2, 1, 1], "equals never change places"
    assert urgent("swap", low=1, high=0) == [0, 0, 0, 2, 1, 1]


def test_a_threshold_is_the_difference_that_it_takes_to_evict() -> None:
    assert urgent("swap", threshold=1, high=1) == [0, 0, 0, 1, 1, 2], "but it is next"
    assert urgent("swap", threshold=1, high=2) == [0, 1, 1, 0, 0, 2]


def test_where_blocks_are_short_the_least_urgent_goes_and_no_more_than_needed() -> None:
    # 12 blocks of a token: prompts of 3, 3 and 3, one more each in the second step. Then 4 are needed by a prompt of 4
    # and one for each of those who stay: the least urgent frees 4 of its own.
    rows = [request(row, 0.0, 3, priority=priority) for row, priority in enumerate([2, 0, 1])]
    rows.append(request(3, 0.010, 4, priority=3))
    replayed = simulate(rows, [3, 3, 3, 1], policy="priority_preempt", blocks=14, block_size=1, max_running=8)
    assert replayed.column("evictions") == [0, 1, 0, 0]
    assert replayed.column("first_token") == [0.010, 0.010, 0.010, 0.020]
    assert [[share.request.row for share in batch.shares] for batch in replayed.batches][1] == [0, 2, 3]


def test_what_must_be_left_to_those_who_stay_need_not_be_left_to_those_who_go() -> None:
    # 4 blocks of a token, 2 held by each of two. The urgent one needs 3, and one for each of those only if they stay.
    rows = [request(0, 0.000), request(1, 0.000), request(2, 0.010, 3, priority=1)]
    replayed = simulate(rows, [2, 2, 1], policy="priority_preempt", blocks=4, block_size=1)
    assert replayed.column("first_token") == [0.010, 0.010, 0.020]
    assert replayed.column("evictions") == [1, 1, 0]


def test_nobody_takes_the_room_of_one_that_was_evicted_in_the_same_step() -> None:
    # 6 blocks of a token. In the third step the second gives up its three so that the first can grow: two stay free,
    # and would be enough for the third and the first's next.
    rows = [request(0, 0.0, 2, priority=2), request(1, 0.0, 3, priority=1), request(2, 0.010, 1, priority=0)]
    replayed = simulate(rows, [4, 3, 1], policy="priority_preempt", blocks=6, block_size=1, max_running=3)
    assert replayed.column("evictions") == [0, 1, 0]
    assert replayed.column("admitted")[2] == 0.040


def test_nobody_is_evicted_for_one_that_would_not_fit_all_the_same() -> None:
    # The urgent one needs 6 of 10 blocks. Its equal holds 5 and grows: the third's two are not enough.
    prompts, priorities = [5, 1, 6], [3, 0, 3]
    rows = [request(row, row // 2 / 100, prompts[row], priority=priorities[row]) for row in range(3)]
    replayed = simulate(rows, [3, 3, 1], policy="priority_preempt", blocks=10, block_size=1, max_running=8)
    assert replayed.column("evictions") == [0, 0, 0]
    assert replayed.column("admitted") == [0.0, 0.0, 0.030]


def inverted(replayer: Replayer, batch: Batch) -> None:
    """A check: no urgent request waits for what less urgent ones hold."""
    step, state = replayer.scheduler._step, replayer.scheduler.state
    assert step is not None
    threshold = replayer.scheduler.policy.threshold  # type: ignore[attr-defined]
    for waiting in state.waiting.values():
        less = [one for one in step.running if one.urgency + threshold < waiting.urgency]
        ahead = [
            one
            for one in state.waiting.values()
            if (-one.urgency, one.due, one.row) < (-waiting.urgency, waiting.due, waiting.row)
        ]
        if not less or ahead or not step.budget:
            continue
        room = step.free_blocks + sum(step.freed_by(one) + step.claim(one) for one in less)
        assert room < step.blocks_to_join(waiting), f"row {waiting.row} waits for {[one.row for one in less]}"


@settings(max_examples=80)
@given(case=cases(), threshold=st.integers(0, 1), host_blocks=st.sampled_from([0, 50]))
def test_no_urgent_request_waits_for_what_less_urgent_ones_hold(case: Case, threshold: int, host_blocks: int) -> None:
    simulate(
        case.rows(),
        case.outputs,
        policy=PriorityPreempt(threshold=threshold),
        blocks=case.blocks,
        block_size=case.block_size,
        host_blocks=host_blocks,
        check=inverted,
        max_running=3,
        token_budget=100_000,
    )


@pytest.mark.parametrize("mode", MODES, ids=str)
@settings(max_examples=30)
@given(case=cases(limited=False), threshold=st.integers(0, 1))
def test_where_all_are_as_urgent_it_is_fifo(mode: tuple[str, dict[str, Any]], case: Case, threshold: int) -> None:
    case.priorities = [case.priorities[0]] * len(case.priorities)
    assert same(replay(case, PriorityPreempt(threshold=threshold), mode), replay(case, "fifo", mode))


# --- srpt


def test_the_shortest_remaining_goes_first_and_takes_over() -> None:
    # When the second comes, the first has 3 left, and waits for its 2; with 2 left it would go on.
    for regime in REGIMES:
        assert turns(run([(0, 4), (1, 2)], "srpt", regime)) == [0, 1, 1, 0, 0, 0]
        assert turns(run([(0, 4), (2, 2)], "srpt", regime)) == [0, 0, 0, 0, 1, 1]


def least_total(jobs: Sequence[tuple[int, int]]) -> int:
    """The least sum of completion times, in steps, over all schedules that may stop and go on at any step."""

    @cache
    def best(now: int, left: tuple[int, ...]) -> int:
        here = [job for job, remaining in enumerate(left) if remaining and jobs[job][0] <= now]
        if not here:
            return best(now + 1, left) if any(left) else 0
        found = []
        for job in here:
            after = (*left[:job], left[job] - 1, *left[job + 1 :])
            found.append((0 if after[job] else now + 1) + best(now + 1, after))
        return min(found)

    return best(0, tuple(size for _, size in jobs))


@pytest.mark.parametrize("regime", REGIMES)
@settings(max_examples=30)
@given(jobs=jobs)
def test_srpt_has_the_least_mean_flow_time_of_all_schedules(regime: str, jobs: list[tuple[int, int]]) -> None:
    # With prompts of a token, and a budget for all, work that was lost comes back in the step of the next token.
    replayed = run(jobs, "srpt", regime)
    assert round(sum(replayed.column("finished")) * 100) == least_total(jobs)


def preemptions(replayed: Replayed, jobs: Sequence[tuple[float, int]]) -> int:
    """How often one was left for another before its end."""
    order, left = turns(replayed), [size for _, size in jobs]
    count = 0
    for one, following in pairwise(order):
        left[one] -= 1
        count += one != following and left[one] > 0
    return count


@pytest.mark.parametrize("regime", REGIMES)
@settings(max_examples=30)
@given(jobs=jobs)
def test_srpt_preempts_at_most_once_for_each_arrival(regime: str, jobs: list[tuple[int, int]]) -> None:
    replayed = run(jobs, "srpt", regime)
    assert preemptions(replayed, jobs) <= len(jobs)
    assert sum(replayed.column("evictions")) == (0 if regime == "pause" else preemptions(replayed, jobs))


# --- trail


def test_trail_lets_the_young_be_evicted_and_the_old_stay() -> None:
    # c = 0.5 of 6 tokens: it may be stopped at 2 tokens, no more at 3.
    for regime in REGIMES:
        assert turns(run([(0, 6), (2, 1)], Trail(c=0.5), regime)) == [0, 0, 1, 0, 0, 0, 0]
        assert turns(run([(0, 6), (3, 1)], Trail(c=0.5), regime)) == [0, 0, 0, 0, 0, 0, 1]


@dataclass
class WatchedTrail(Trail):
    """Notes how far those were who are evicted while somebody goes on."""

    old: list[int] = field(default_factory=list, init=False)
    young: list[int] = field(default_factory=list, init=False)

    def on_evict(self, request: Request, step: Step) -> None:
        if step.shares:  # else nobody could have gone on
            (self.old if request.generated >= request.memory["trail"] else self.young).append(request.row)


@pytest.mark.parametrize("mode", CONTINUOUS, ids=str)
@settings(max_examples=40)
@given(case=cases(), c=st.sampled_from([0.0, 0.3, 0.8]))
def test_trail_evicts_nobody_past_c_while_somebody_can_go_on(
    mode: tuple[str, dict[str, Any]], case: Case, c: float
) -> None:
    policy = WatchedTrail(c=c)
    replay(case, policy, mode)
    assert policy.old == []
    assert c > 0 or policy.young == []


@settings(max_examples=30)
@given(jobs=jobs)
def test_trail_with_c_of_0_is_sjf_and_with_1_srpt(jobs: list[tuple[int, int]]) -> None:
    assert same(run(jobs, Trail(c=0.0), "recompute"), run(jobs, "sjf", "recompute"))
    for regime in REGIMES:
        assert same(run(jobs, Trail(c=1.0), regime), run(jobs, "srpt", regime))


@pytest.mark.parametrize("mode", MODES, ids=str)
@settings(max_examples=30)
@given(case=cases(limited=False))
def test_trail_with_c_of_0_and_equal_lengths_is_fifo_while_nobody_is_evicted(
    mode: tuple[str, dict[str, Any]], case: Case
) -> None:
    case.outputs = [case.outputs[0]] * len(case.outputs)
    case.declared = [max(case.outputs[0], declared) for declared in case.declared]
    fifo = replay(case, "fifo", mode)
    assume(not sum(fifo.column("evictions")))
    assert same(replay(case, Trail(c=0.0), mode), fifo)


# --- ltr


def test_ltr_boosts_who_got_no_tokens_for_too_long() -> None:
    # Two steps without tokens, and the first gets one, though those of 2 tokens go before its 4.
    for regime in REGIMES:
        replayed = run([(0, 4), (1, 2), (3, 2), (5, 2)], Ltr(starve=2, boost=1), regime)
        assert turns(replayed) == [0, 1, 1, 0, 2, 2, 0, 3, 3, 0]
        replayed = run([(0, 4), (1, 2), (3, 2), (5, 2)], Ltr(starve=2, boost=2), regime)
        assert turns(replayed) == [0, 1, 1, 0, 0, 2, 2, 0, 3, 3], "the last two starve alike: who was due first"
    assert turns(run([(0, 4), (1, 2), (3, 2), (5, 2)], "ltr")) == [0, 1, 1, 2, 2, 3, 3, 0, 0, 0]


@settings(max_examples=50)
@given(
    jobs=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 8)), min_size=1, max_size=10).map(sorted),
    starve=st.integers(1, 12),
    boost=st.integers(1, 4),
    slots=st.integers(1, 3),
    pauses=st.booleans(),
)
def test_ltr_leaves_nobody_idle_for_longer_than_its_bound(
    jobs: list[tuple[int, int]], starve: int, boost: int, slots: int, *, pauses: bool
) -> None:
    rows = [request(row, round(step / 100, 6)) for row, (step, _) in enumerate(jobs)]
    limits = {"max_running": 100, "max_scheduled": slots} if pauses else {"max_running": slots}
    replayed = simulate(rows, [size for _, size in jobs], policy=Ltr(starve=starve, boost=boost), **limits)
    bound = starve + ceil((len(jobs) - 1) / slots) * boost  # those in front have each had their steps by then
    for due, times in zip(replayed.column("due"), replayed.column("token_times"), strict=True):
        for before, token in pairwise([due, *times]):
            idle = round((token - before) * 100) - 1
            assert idle <= bound


@dataclass
class Scores:
    """A predictor whose numbers mean nothing but their order."""

    of: Callable[[int], float]
    truth: Sequence[int] = ()

    def start(self, output_tokens: Sequence[int], seed: int = 0) -> None:
        self.truth = output_tokens

    def expect(self, request: Request) -> float:
        return self.of(self.truth[request.row])

    def observe(self, request: Request) -> None:
        pass


@pytest.mark.parametrize("mode", CONTINUOUS, ids=str)
@settings(max_examples=25)
@given(case=cases(limited=False))
def test_only_the_order_of_scores_counts_for_ltr(mode: tuple[str, dict[str, Any]], case: Case) -> None:
    plain = replay(case, Ltr(starve=5, boost=2), mode, predictor=Scores(lambda length: 1.0 + length))
    bent = replay(case, Ltr(starve=5, boost=2), mode, predictor=Scores(lambda length: 7.0 + 1000.0 * length**3))
    assert same(plain, bent)


# --- mlfq, fastserve


def test_mlfq_sinks_with_each_quantum() -> None:
    # The first is at level 1 after its first step, and has used but half of that level's 20 ms when the second comes.
    for regime in REGIMES:
        assert turns(run([(0, 4), (2, 1)], "mlfq", regime)) == [0, 0, 1, 0, 0]
    # Both at level 1 from 20 ms on; the first, due before, has its two steps there, then the second.
    assert turns(run([(0, 4), (1, 4)], "mlfq")) == [0, 1, 0, 0, 1, 1, 0, 1]
    # With one slot, who is at the same level does not evict the other: a quantum's steps come together.
    assert turns(run([(0, 4), (1, 4)], "mlfq", "swap")) == [0, 1, 1, 1, 0, 0, 0, 1]


def test_fastserve_begins_where_the_prompt_fits_into_the_quantum() -> None:
    cost = CostModel(fixed=0.010, prefill=0.001)  # a prompt of 30 takes 40 ms: level 2
    settings: dict[str, Any] = {"cost": cost, "max_running": 9, "max_scheduled": 1}
    found = {}
    for policy in ("mlfq", "fastserve"):
        # Two prompts of 30 at once, and while the first is computed, one of 1.
        rows = [request(0, 0.0, 30), request(1, 0.0, 30), request(2, 0.001, 1)]
        found[policy] = turns(simulate(rows, [2, 1, 2], policy=policy, **settings))
    # One of 1 takes 11 ms, more than level 0 gives: it begins at level 1, and goes down only with its second step.
    assert found["mlfq"] == [0, 1, 2, 0, 2]
    assert found["fastserve"] == [0, 2, 2, 1, 0]


def test_fastserve_promotes_who_starves() -> None:
    # At 20 ms the first is at level 1, and short ones keep coming to level 0. After each 30 ms it goes to the top.
    arrivals = [(0.0, 5), *((step - 0.5, 1) for step in range(2, 9))]
    assert turns(run(arrivals, "fastserve"))[:10] == [0, 0, 1, 2, 3, 4, 5, 6, 7, 0]
    promoted = run(arrivals, FastServe(every=1, starve_s=0.03))
    assert turns(promoted) == [0, 0, 1, 2, 3, 0, 4, 5, 6, 0, 7, 0]


@dataclass
class Watched:
    """Follows the levels of a policy, step by step: a check."""

    used: dict[tuple[int, int, int], float] = field(
        default_factory=lambda: defaultdict(float)
    )  # row, level, promotions
    levels: dict[int, int] = field(default_factory=dict)
    promotions: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    longest: float = 0.0

    def __call__(self, replayer: Replayer, batch: Batch) -> None:
        policy, state = replayer.scheduler.policy, replayer.scheduler.state
        assert isinstance(policy, Levelled)
        everybody = [*state.waiting.values(), *state.resident.values()]
        scheduled = {share.request.row for share in batch.shares}
        for one in everybody:
            level = policy.standing(one).level
            if level < self.levels.get(one.row, 0):
                assert level == 0, "who is promoted goes to the top"
                self.promotions[one.row] += 1
            assert level <= self.levels.get(one.row, level) + 1 or level == 0
            self.levels[one.row] = level
        seconds = 0.010 + 0.001 * sum(share.tokens for share in batch.shares if share.prefill)
        self.longest = max(self.longest, seconds)
        for row in scheduled:
            self.used[row, self.levels[row], self.promotions[row]] += seconds
        left_out = [self.levels[one.row] for one in everybody if one.row not in scheduled]
        assert max(self.levels[row] for row in scheduled) <= min(left_out, default=99), "a higher level is left out"


@settings(max_examples=80)
@given(
    jobs=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), min_size=1, max_size=8).map(sorted),
    policy=st.sampled_from([Mlfq, FastServe, Autellix]),
    slots=st.integers(1, 3),
    prompt=st.integers(1, 12),
    pauses=st.booleans(),
    promotes=st.booleans(),
)
def test_a_level_gives_its_quantum_and_no_lower_one_goes_before_it(
    jobs: list[tuple[int, int]], policy: type[Levelled], slots: int, prompt: int, *, pauses: bool, promotes: bool
) -> None:
    options: dict[str, Any] = {"quantum_s": 0.02, "levels": 4}
    if promotes and policy is FastServe:
        options |= {"every": 2, "starve_s": 0.03}
    if promotes and policy is Autellix:
        options |= {"every": 2, "beta": 1.0}
    watched = Watched()
    rows = [request(row, round(step / 100, 6), prompt) for row, (step, _) in enumerate(jobs)]
    limits = {"max_running": 100, "max_scheduled": slots} if pauses else {"max_running": slots, "host_blocks": 1000}
    cost = CostModel(fixed=0.010, prefill=0.001)
    made = policy(**options)
    simulate(rows, [size for _, size in jobs], policy=made, cost=cost, check=watched, **limits)
    for (_, level, _), used in watched.used.items():
        assert level == 3 or used < made.quantum(level) + watched.longest
    assert promotes or policy is Autellix or not sum(watched.promotions.values())


# --- autellix


def test_autellix_ranks_a_call_by_what_its_program_has_had() -> None:
    # The turn at 20 ms is the second call of a program that was served for 20 ms; the last is the first of another, due
    # after it. The one in between keeps the engine busy until both are there.
    def replayed(policy: Policy) -> list[int]:
        rows = [
            request(0, 0.000, session="agent", turn=0),
            request(1, 0.000, session="agent", turn=1),
            request(2, 0.005),
            request(3, 0.030, session="other", turn=0),
        ]
        return turns(simulate(rows, [2, 2, 2, 2], policy=policy, max_running=9, max_scheduled=1))

    assert replayed(Mlfq(quantum_s=0.02)) == [0, 0, 2, 2, 1, 1, 3, 3]
    assert replayed(Autellix(quantum_s=0.02)) == [0, 0, 2, 2, 3, 3, 1, 1]
    assert replayed(Autellix(quantum_s=0.02, every=1, beta=1.0)) == [0, 0, 2, 2, 1, 1, 3, 3], "waited as long as served"


def test_without_sessions_autellix_is_mlfq() -> None:
    many = [(step, 1 + step % 5) for step in range(12)]
    quanta: dict[str, Any] = {"quantum_s": 0.02, "levels": 4}
    for regime in REGIMES:
        assert same(run(many, Autellix(**quanta, every=10_000), regime), run(many, Mlfq(**quanta), regime))


def test_who_has_no_session_is_of_no_program_not_even_of_one_without_a_name() -> None:
    # The program "" has been served 30 ms, three quanta. Row 2 has no session: it begins at the top, as row 3 does.
    sessions = ["", "agent", None, "another"]
    rows = [request(row, due, session=sessions[row]) for row, due in enumerate([0.000, 0.025, 0.031, 0.032])]
    replayed = simulate(rows, [3, 1, 1, 1], policy=Autellix(quantum_s=0.01), max_running=1)
    assert turns(replayed) == [0, 0, 0, 1, 2, 3]


def test_a_program_is_not_charged_for_what_an_eviction_lost() -> None:
    # A prompt of 4 in a step, an answer of 3: 30 ms. It is evicted once, and its prompt is computed again with its next
    # token: 10 ms that count once, as it gets that token.
    rows = [
        request(0, 0.000, 4, session="agent", turn=0),
        request(1, 0.015),
        request(2, 0.000, session="agent", turn=1),
    ]
    policy = Autellix(quantum_s=0.01)
    replayed = simulate(rows, [3, 1, 1], policy=policy, max_running=1, token_budget=4)
    assert turns(replayed) == [0, 0, 1, 0, 0, 2]
    assert replayed.column("evictions") == [1, 0, 0]
    assert policy._served["agent"] == pytest.approx(0.040)


# --- andes


@given(st.floats(0.1, 100), st.floats(0, 10), st.floats(0, 1000), st.integers(0, 5000), st.floats(0, 5000))
def test_experience_and_what_tokens_add_to_it_are_between_0_and_1(
    pace: float, patience: float, at: float, generated: int, more: float
) -> None:
    reader, one = Reader(pace, patience), request(0, generated=generated)
    expected = reader.expects(one, at)
    assert 0 <= reader.experience(expected, generated) <= reader.experience(expected, generated + more) <= 1
    assert 0 <= reader.gain(one, at, more) <= 1


def test_experience_by_hand() -> None:
    reader = Reader(per_s=4.0, patience_s=1.0)
    assert reader.expects(request(0), 0.5) == 0.0
    assert reader.expects(request(0), 6.0) == 20.0
    assert [reader.experience(20.0, delivered) for delivered in (0, 10, 15, 20, 30)] == [0.0, 0.75, 0.9375, 1.0, 1.0]
    assert reader.gain(request(0, generated=10), 6.0, 5.0) == 0.1875


def test_andes_gives_the_place_of_one_who_is_read_slowly_to_one_who_waits() -> None:
    # 36 blocks of a token. At 300 ms the first has a context of 4 + 30, more than its reader will have read in 10 s,
    # less what is missing: 46.5 - 30. It gains 13 % by going on, over 35 blocks; the second, all of it, over 5.
    found = {}
    for policy in ("fifo", "andes"):
        rows = [request(0, 0.000, 4), request(1, 0.300, 4)]
        found[policy] = simulate(rows, [32, 2], policy=policy, blocks=36, block_size=1, host_blocks=40)
    assert found["fifo"].column("admitted") == [0.0, 0.320]
    assert found["andes"].column("admitted") == [0.0, 0.300]
    assert found["andes"].column("evictions") == [1, 0]
    assert found["andes"].column("finished") == [0.340, 0.320]


@pytest.mark.parametrize("mode", MODES, ids=str)
@settings(max_examples=25)
@given(case=cases())
def test_below_its_trigger_andes_is_fifo(mode: tuple[str, dict[str, Any]], case: Case) -> None:
    # Steps of a case take some 20 ms, and a token of 5 a second takes 200 ms to read.
    assert same(replay(case, Andes(trigger=1.1, every=1), mode), replay(case, "fifo", mode))


@settings(max_examples=50)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 10), st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=10),
    cap=st.integers(0, 2),
    slots=st.integers(1, 3),
)
def test_andes_evicts_nobody_more_often_than_its_cap(sizes: list[tuple[int, int, int]], cap: int, slots: int) -> None:
    rows = [request(row, step / 100, prompt) for row, (step, prompt, _) in enumerate(sorted(sizes))]
    policy = Andes(trigger=0.0, every=1, evictions=cap, read_per_s=200.0, patience_s=0.0, horizon_s=0.1)
    replayed = simulate(rows, [size for _, _, size in sorted(sizes)], policy=policy, max_running=slots, block_size=1)
    assert max(replayed.column("evictions")) <= cap


def test_a_prompt_in_chunks_goes_on_after_a_more_urgent_one_has_joined() -> None:
    # Ten tokens a step. The second comes at 15 ms, and the whole of the step at 20 ms is for its prompt.
    rows = [request(0, 0.0, 100, priority=0), request(1, 0.015, 10, priority=2)]
    replayed = simulate(rows, [1, 1], policy="priority_preempt", token_budget=10)
    assert replayed.column("token_times") == [[0.110], [0.030]]
    assert replayed.column("evictions") == [0, 0]

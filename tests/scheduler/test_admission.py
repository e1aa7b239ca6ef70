"""Admission rules: what each admits, by hand, and what each promises, on traces drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.contract.cases import COST, MODES, Case, Engine, cases, check_outcome, engines, replay
from replay.contract.simulation import Replayed, request, simulate
from replay.scheduler import Admission, Ordered, PastFuture, Step, TokenRatio, admissions, policies

CONTINUOUS = [mode for mode in MODES if mode[0] == "continuous"]
BATCHES = [  # many at once, with a budget that is too small for some, for all, and for nobody
    *CONTINUOUS,
    ("continuous", {"max_running": 8, "token_budget": 5}),
    ("continuous", {"max_running": 8, "token_budget": 9}),
    ("continuous", {"max_running": 8, "token_budget": 64}),
    ("continuous", {"max_running": 8, "token_budget": 64, "prefill": "whole"}),
]
Batch = tuple[str, dict[str, Any]]
ORDERED = sorted(name for name in policies if issubclass(policies[name], Ordered))


def admitted(rule: str | Admission, rows: list[Any], outputs: list[int], **options: Any) -> list[float]:
    """When each request was admitted under `fifo`."""
    return simulate(rows, outputs, policy=policies["fifo"](admission=rule), **options).column("admitted")


@settings(max_examples=40)
@given(cases(), engines, st.sampled_from(BATCHES), st.sampled_from(["fifo", "sjf", "fair"]))
def test_reserve_max_evicts_nobody(case: Case, engine: Engine, mode: Batch, policy: str) -> None:
    promised: list[int] = []

    @dataclass
    class Watched(policies[policy]):  # type: ignore[misc]
        def schedule(self, step: Step) -> None:
            super().schedule(step)
            most = [one.prompt_tokens + one.max_tokens for one in step.running]
            promised.append(sum(-(-min(tokens, case.blocks * case.block_size) // case.block_size) for tokens in most))

    replayed = replay(case, Watched(admission="reserve_max"), mode, engine)
    check_outcome(case, replayed)
    assert replayed.column("evictions") == [0] * len(case.outputs)
    if not engine.prefix_cache:
        assert max(promised) <= case.blocks, "all that was declared fits, so far as it is more than one request's"


def test_reserve_max_counts_a_prompt_and_all_that_it_declares() -> None:
    """Ten blocks of 4 tokens: two of 8 + 12 take 5 blocks each, the third waits for the first to be over."""
    rows = [request(row, prompt=8, max_tokens=12) for row in range(3)]
    assert admitted("reserve_max", rows, [4, 12, 4], blocks=10, block_size=4) == [0.0, 0.0, 0.04]


def test_reserve_max_lets_one_that_declares_more_than_the_pool_run_alone() -> None:
    rows = [request(0, prompt=4, max_tokens=1000), request(1, prompt=4, max_tokens=4)]
    assert admitted("reserve_max", rows, [5, 3], blocks=10, block_size=4) == [0.0, 0.05]


def test_reserve_max_counts_a_shared_block_once() -> None:
    """Two of 8 + 4 tokens in blocks of 4, of which the prompt's first is common: 3 blocks, and 2 more."""
    for blocks, joined in ((5, 0.01), (4, 0.04)):
        rows = [request(0, 0.0, 8, max_tokens=4), request(1, 0.01, 8, max_tokens=4)]
        prompts = {0: [1, 2, 3, 4, 5, 6, 7, 8], 1: [1, 2, 3, 4, 9, 9, 9, 9]}
        options = {"blocks": blocks, "block_size": 4, "prefix_cache": True, "prompts": prompts}
        assert admitted("reserve_max", rows, [4, 4], **options) == [0.0, joined]


def test_future_peak_knows_that_the_short_are_over_when_the_long_have_grown() -> None:
    """Blocks of one token. At their longest the three hold 11, 5 and 9; together never more than 17, in the second
    step. With a block less the third waits, for as long as its own fourth step would be one too many."""
    rows = [request(0, prompt=4), request(1, prompt=4), request(2, prompt=6)]
    for blocks, joined in ((17, 0.0), (16, 0.08)):
        again = [request(one.row, prompt=one.prompt_tokens) for one in rows]
        assert admitted("future_peak", again, [8, 2, 4], blocks=blocks, block_size=1) == [0.0, 0.0, joined]


def test_future_peak_counts_whole_blocks() -> None:
    """Four blocks of 16, where in tokens there is always room for all. If the third answer has 7 tokens, it is over
    when the others come to 17, and take 2 blocks each; with 8 it comes to 17 with them, and has to wait for their end.
    """
    for tokens, joined in ((7, 0.0), (8, 0.1)):
        rows = [request(row, prompt=10) for row in range(3)]
        assert admitted("future_peak", rows, [10, 10, tokens], blocks=4, block_size=16) == [0.0, 0.0, joined]


def test_future_peak_believes_the_predictor() -> None:
    """Blocks of one token, and 4 + 8 declared, of which the last is never held. Two fit in 22 blocks; in 21 if one is a
    step ahead of the other; in 20 not before the first is over, which it is sooner than declared."""
    for blocks, joined in ((22, 0.0), (21, 0.01), (20, 0.02)):
        rows = [request(row, prompt=4, max_tokens=8) for row in range(2)]
        options = {"blocks": blocks, "block_size": 1, "predictor": "max_tokens"}
        assert admitted("future_peak", rows, [2, 2], **options) == [0.0, joined]


def test_future_peak_waits_for_prompts_that_take_several_steps() -> None:
    """Blocks of one token, steps of four. A prompt of 12 beside a decode takes 4 steps, so that its second token comes
    in the fifth, when the other holds 6 and itself 13: with a block less it would have to be evicted then."""
    for blocks, joined in ((19, 0.01), (18, 0.12)):
        rows = [request(0, 0.0, 1), request(1, 0.01, 12)]
        options = {"blocks": blocks, "block_size": 1, "token_budget": 4}
        replayed = simulate(rows, [12, 2], policy=policies["fifo"](admission="future_peak"), **options)
        assert replayed.column("admitted") == [0.0, joined]
        assert replayed.column("evictions") == [0, 0]


def test_future_peak_knows_that_shared_blocks_stay_when_one_who_holds_them_leaves() -> None:
    """Blocks of one token. The third shares 8 with the first, which is soon over; in its last step the third holds 14
    and the second 7. With a block less it waits for the second."""
    prompts = {0: [*range(1, 9)], 1: [50], 2: [*range(1, 10)]}
    for blocks, joined in ((21, 0.01), (20, 0.12)):
        rows = [request(0, 0.0, 8), request(1, 0.0, 1), request(2, 0.005, 9)]
        options = {"blocks": blocks, "block_size": 1, "prefix_cache": True, "prompts": prompts}
        replayed = simulate(rows, [3, 12, 6], policy=policies["fifo"](admission="future_peak"), **options)
        assert replayed.column("admitted") == [0.0, 0.0, joined]
        assert replayed.column("evictions") == [0, 0, 0]


@settings(max_examples=100)
@given(cases(), engines, st.sampled_from(BATCHES), st.sampled_from(["fifo", "sjf", "fair", "priority"]))
def test_future_peak_evicts_nobody_when_lengths_are_known(case: Case, engine: Engine, mode: Batch, policy: str) -> None:
    """Blocks of one token or sixteen, prompts in chunks or whole, with a prefix cache, swapping, overlap or without."""
    replayed = replay(case, policies[policy](admission="future_peak"), mode, engine)
    check_outcome(case, replayed)
    assert replayed.column("evictions") == [0] * len(case.outputs)


@settings(max_examples=40)
@given(cases(), engines, st.sampled_from(CONTINUOUS), st.integers(1, 8), st.integers(1, 6))
def test_past_future_evicts_nobody_when_all_answers_are_alike(
    case: Case, engine: Engine, mode: Batch, tokens: int, window: int
) -> None:
    case.outputs = [tokens] * len(case.outputs)
    case.declared = [tokens + 9] * len(case.outputs)
    replayed = replay(case, policies["fifo"](admission=PastFuture(window=window, reserve=0.0)), mode, engine)
    check_outcome(case, replayed)
    assert replayed.column("evictions") == [0] * len(case.outputs)


def test_past_future_expects_what_was_and_before_that_what_is_declared() -> None:
    """Blocks of one token. Of 2 + 64 tokens nobody fits beside another; once one answer has had 3, all are to."""
    rows = [request(row, prompt=2) for row in range(4)]
    rule = PastFuture(window=1, reserve=0.0)
    assert admitted(rule, rows, [3, 3, 3, 3], blocks=12, block_size=1) == [0.0, 0.03, 0.03, 0.03]
    rows = [request(row, prompt=2) for row in range(4)]
    rule = PastFuture(window=1, reserve=0.25)  # 9 of 12 blocks, where three hold 4 each
    assert admitted(rule, rows, [3, 3, 3, 3], blocks=12, block_size=1) == [0.0, 0.03, 0.03, 0.06]


@pytest.mark.parametrize(("before", "together"), [(3, False), (4, True)])
def test_past_future_begins_with_half_a_window_of_answers_as_long_as_may_be(before: int, together: bool) -> None:
    rows = [request(row, row / 10, 2) for row in range(before)]
    rows += [request(row, 1.0, 2) for row in (before, before + 1)]
    first, second = admitted(
        PastFuture(window=4, samples=100, reserve=0.0), rows, [3] * len(rows), blocks=12, block_size=1
    )[-2:]
    assert (first == second) is together


def test_an_answer_longer_than_all_recent_ones_may_get_as_long_as_declared() -> None:
    """Nine blocks of one token. The second answer has had 1 token or 3 when the third request comes, where the first
    had 2 in all: so it is expected to have 2, or 9, and then to hold 10 blocks."""
    for comes, joined in ((0.11, 0.11), (0.13, 0.15)):
        rows = [request(row, due, 2, max_tokens=9) for row, due in enumerate((0.0, 0.1, comes))]
        rule = PastFuture(window=1, reserve=0.0)
        assert admitted(rule, rows, [2, 5, 2], blocks=9, block_size=1) == [0.0, 0.1, joined]


def test_sglang_ratio_reserves_a_share_for_residents_and_all_for_who_comes() -> None:
    """Blocks of one token. In the third step the first holds 6 and may generate 18 more, of which half is 9; the second
    wants 4 + 10: 29 in all. With one block less it waits for the end, as the first only grows."""
    for blocks, joined in ((29, 0.02), (28, 0.2)):
        rows = [request(0, 0.0, 4, max_tokens=20), request(1, 0.015, 4, max_tokens=10)]
        rule = TokenRatio(initial=0.5, floor=1.0)
        assert admitted(rule, rows, [20, 10], blocks=blocks, block_size=1) == [0.0, joined]


def test_sglang_ratio_counts_those_who_join_together_in_full() -> None:
    """Blocks of one token, 4 + 10 for each of two. In the second step a tenth of 9 more is kept for the first."""
    for blocks, joined in ((28, 0.0), (27, 0.01), (20, 0.01), (19, 0.1)):
        rows = [request(row, 0.0, 4, max_tokens=10) for row in range(2)]
        rule = TokenRatio(initial=0.1, floor=1.0)
        assert admitted(rule, rows, [10, 10], blocks=blocks, block_size=1) == [0.0, joined]


def test_sglang_ratio_falls_in_a_line_with_each_decode_step_and_begins_anew_when_idle() -> None:
    """From 0.5 to 0.1 in 4 decode steps, of which the second has two decodes; prompts alone make it no smaller."""
    rule, ratios = TokenRatio(initial=0.5, floor=0.2, decay_steps=4), []
    rows = [request(0, 0.0), request(1, 0.0), request(2, 0.2)]
    policy = policies["fifo"](admission=rule)
    simulate(rows, [3, 7, 2], policy=policy, check=lambda replayer, batch: ratios.append(rule.ratio))
    assert ratios == pytest.approx([0.5, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.5, 0.5])


def test_sglang_ratio_jumps_when_somebody_is_evicted() -> None:
    """Sixteen blocks of one token. The second, who joined a step later, has to go in the ninth step; the first has had
    8 tokens of 10 by then, and the ratio is 8 / (10 + 1)."""
    rule = TokenRatio(initial=0.1, floor=1.0, retract_steps=0)
    rows = [request(0, 0.0, max_tokens=10), request(1, 0.005, max_tokens=10)]
    replayed = simulate(rows, [10, 10], policy=policies["fifo"](admission=rule), blocks=16, block_size=1)
    assert replayed.column("admitted") == [0.0, 0.01]
    assert replayed.column("evictions") == [0, 1]
    assert rule.ratio == pytest.approx(8 / 11)


@settings(max_examples=40)
@given(cases(), engines, st.sampled_from(CONTINUOUS))
def test_sglang_ratio_stays_in_its_bounds_and_falls_between_evictions(case: Case, engine: Engine, mode: Batch) -> None:
    rule = TokenRatio(initial=0.6, floor=0.2, decay_steps=5)
    seen = [rule.ratio]

    @dataclass
    class Watched(Ordered):
        def schedule(self, step: Step) -> None:
            super().schedule(step)
            assert rule.least <= rule.ratio <= 1
            if rule.ratio > seen[-1]:
                assert step.evicted or rule.ratio == rule.initial, "it rises at an eviction, or begins anew"
            seen.append(rule.ratio)

    check_outcome(case, replay(case, Watched(admission=rule), mode, engine))


@settings(max_examples=100)
@given(
    cases(limited=False),
    engines,
    st.sampled_from(CONTINUOUS),
    st.sampled_from(ORDERED),
    st.sampled_from(list(admissions)),
)
def test_every_rule_keeps_the_contract_and_serves_everybody(
    case: Case, engine: Engine, mode: Batch, policy: str, rule: str
) -> None:
    replayed = replay(case, policies[policy](admission=rule), mode, engine)
    check_outcome(case, replayed)
    fits = [
        prompt + tokens <= case.blocks * case.block_size
        for prompt, tokens in zip(case.prompts, case.outputs, strict=True)
    ]
    assert replayed.column("status") == ["completed" if room else "rejected" for room in fits]


@pytest.mark.parametrize("rule", list(admissions))
def test_what_is_declared_beyond_the_pool_stops_nobody(rule: str) -> None:
    rows = [request(row, row / 100, 5, max_tokens=1_000_000) for row in range(6)]
    replayed = simulate(rows, [9] * 6, policy=policies["fifo"](admission=rule), blocks=5, block_size=4)
    assert replayed.column("status") == ["completed"] * 6


def test_evictions_and_throughput_part_as_published() -> None:
    """Past-Future's comparison, in small: who admits whatever fits now evicts and computes again; who reserves all that
    was declared leaves the pool empty; who looks at what was does neither."""

    def replayed(rule: str | Admission) -> Replayed:
        random = Random(7)
        outputs = [min(256, 1 + int(random.lognormvariate(3.4, 1.0))) for _ in range(160)]
        rows = [request(row, row * 0.03, random.randint(8, 64), max_tokens=256) for row in range(160)]
        policy = policies["fifo"](admission=rule)
        return simulate(rows, outputs, policy=policy, blocks=75, block_size=16, max_running=40, cost=COST)

    aggressive, cautious, reserving, knowing = (
        replayed(rule) for rule in ("aggressive", PastFuture(window=40), "reserve_max", "future_peak")
    )
    evictions = {
        name: sum(one.column("evictions")) for name, one in (("aggressive", aggressive), ("past_future", cautious))
    }
    assert sum(reserving.column("evictions")) == sum(knowing.column("evictions")) == 0
    assert evictions["aggressive"] > 5 * evictions["past_future"]
    makespan = [max(one.column("finished")) for one in (reserving, cautious, knowing)]
    assert makespan[0] > 1.5 * makespan[1]

"""Policies of what a step is made of, and of what is reserved: by hand, and held to what their papers promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.sarathi import Sarathi
from policies.vllm import Vllm
from replay.contract.cases import COST, MODES, Case, cases, replay
from replay.contract.simulation import Replayed, request, simulate
from replay.executors.interface import Batch
from replay.replayer import Replayer
from replay.request import Request
from replay.scheduler import Policy, Step

CONTINUOUS = [mode for mode in MODES if mode[0] == "continuous"]
Check = Callable[[Replayer, Batch], None]


def traced(seed: int) -> tuple[list[Request], list[int]]:
    """A dozen requests within 60 ms: prompts of 1 to 12 tokens, answers of 1 to 12, up to 6 more declared."""
    random = Random(seed)
    arrivals = sorted(random.randint(0, 12) / 200 for _ in range(12))
    outputs = [random.randint(1, 12) for _ in arrivals]
    rows = [
        request(row, arrival, random.randint(1, 12), max_tokens=outputs[row] + random.randint(0, 6))
        for row, arrival in enumerate(arrivals)
    ]
    return rows, outputs


def run_traced(seed: int, policy: str | Policy, check: Check | None = None, **settings: Any) -> Replayed:
    rows, outputs = traced(seed)
    return simulate(rows, outputs, policy=policy, block_size=2, check=check, **({"max_running": 6} | settings))


def token_times(run: Replayed) -> list[list[float]]:
    return run.column("token_times")


def test_orca_admits_as_many_as_fit_with_all_that_they_declare() -> None:
    # A pool of 8 tokens; each declares 1 + 3, and gets 2: two at a time, while all four would fit.
    def run(policy: str) -> Replayed:
        rows = [request(row, prompt=1, max_tokens=3) for row in range(4)]
        return simulate(rows, [2] * 4, policy=policy, max_running=4, blocks=8, block_size=1)

    assert run("orca").column("admitted") == [0.0, 0.0, 0.02, 0.02]
    assert run("orca").steps["bound"].to_list() == ["blocks", "blocks", "nothing", "nothing"]
    assert run("fifo").column("admitted") == [0.0, 0.0, 0.0, 0.0]


@settings(max_examples=60)
@given(seed=st.integers(0, 999), blocks=st.integers(12, 40), budget=st.sampled_from([5, 64]))
def test_orca_holds_what_is_declared_within_the_pool_evicts_nobody_and_lets_nobody_pass(
    seed: int, blocks: int, budget: int
) -> None:
    def within(replayer: Replayer, batch: Batch) -> None:
        residents = replayer.scheduler.state.resident.values()
        declared = sum(-(-(one.prompt_tokens + one.max_tokens) // 2) for one in residents)
        assert declared <= blocks or len(residents) == 1

    run = run_traced(seed, "orca", within, blocks=blocks, token_budget=budget)
    assert run.requests["evictions"].sum() == 0
    served = run.requests.filter(status="completed").sort("row")
    assert len(served) == 12
    assert served["admitted"].is_sorted()
    assert served["first_token"].is_sorted()


def test_what_orca_never_evicts_fifo_does() -> None:
    assert run_traced(1, "fifo", blocks=14).requests["evictions"].sum() > 0
    assert run_traced(1, "orca", blocks=14).requests["evictions"].sum() == 0


def test_prefill_first_computes_a_prompt_while_decodes_stand_still() -> None:
    # Budget 4. The second comes at 15 ms with a prompt of 8: two steps, from 20 ms to 40, of nothing else.
    rows = [request(0, 0.0, 4), request(1, 0.015, 8)]
    run = simulate(rows, [4, 2], policy="prefill_first", max_running=2, token_budget=4)
    assert token_times(run) == [[0.01, 0.02, 0.05, 0.06], [0.04, 0.05]]
    assert run.steps["prefill_tokens"].to_list() == [4, 0, 4, 4, 0, 0]
    assert run.steps["decodes"].to_list() == [0, 1, 0, 0, 2, 1]


@pytest.mark.parametrize("mode", CONTINUOUS, ids=str)
@settings(max_examples=40)
@given(case=cases(limited=False), host_blocks=st.sampled_from([0, 100]))
def test_prefill_first_never_mixes_prompts_and_decodes(
    mode: tuple[str, dict[str, Any]], case: Case, host_blocks: int
) -> None:
    def one_kind(replayer: Replayer, batch: Batch) -> None:
        assert len({share.request.prefilling for share in batch.shares}) == 1
        if batch.shares[0].request.prefilling or len(batch.shares) == mode[1].get("max_scheduled"):
            return
        running = [one for one in replayer.scheduler.state.resident.values() if one.state == "running"]
        decoding = {one.row for one in running if not one.prefilling}
        assert decoding == {share.request.row for share in batch.shares}, "a step of decodes has all of them"

    simulate(
        case.rows(),
        case.outputs,
        policy="prefill_first",
        mode=mode[0],
        blocks=case.blocks,
        block_size=case.block_size,
        host_blocks=host_blocks,
        check=one_kind,
        **mode[1],
    )


def test_where_no_prompt_fits_prefill_first_decodes() -> None:
    # Four blocks of one token: the second prompt, of 3, does not fit beside the first, of 2.
    rows = [request(0, 0.0, 2), request(1, 0.0, 3)]
    run = simulate(rows, [2, 1], policy="prefill_first", max_running=2, blocks=4, block_size=1)
    assert token_times(run) == [[0.01, 0.02], [0.03]]
    assert run.steps["bound"].to_list() == ["blocks", "blocks", "nothing"]


def test_a_prompt_begun_that_finds_no_blocks_lets_the_decodes_go_on() -> None:
    # Seven blocks of one token, budget 3. The first holds 3; the second has computed 3 of 6 at 20 ms and finds one more
    # block, which the first takes for its last token. Nobody is evicted.
    rows = [request(0, 0.0, 3), request(1, 0.005, 6)]
    run = simulate(rows, [2, 1], policy="prefill_first", max_running=2, token_budget=3, blocks=7, block_size=1)
    assert token_times(run) == [[0.01, 0.03], [0.04]]
    assert run.column("evictions") == [0, 0]


def test_sarathi_fills_up_with_prompts_what_decodes_leave_of_a_chunk() -> None:
    # Chunks of 4 in a budget of 64. The first decodes; the second's prompt of 7 gets 3, 3 and 1, the third's of 5 gets
    # the other 2 of that step, and 3.
    rows = [request(0, 0.0, 1), request(1, 0.005, 7), request(2, 0.005, 5)]
    run = simulate(rows, [6, 1, 1], policy=Sarathi(chunk_tokens=4), max_running=3, token_budget=64)
    assert token_times(run) == [[0.01, 0.02, 0.03, 0.04, 0.05, 0.06], [0.04], [0.05]]
    assert run.steps["prefill_tokens"].to_list() == [1, 3, 3, 3, 3, 0]
    assert run.steps["bound"].to_list() == ["nothing", "budget", "budget", "budget", "nothing", "nothing"]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 999),
    chunk_tokens=st.integers(1, 12),
    token_budget=st.sampled_from([3, 64]),
    blocks=st.integers(12, 60),
)
def test_no_step_of_sarathi_is_larger_than_its_chunk_and_no_resident_decode_is_left_out(
    seed: int, chunk_tokens: int, token_budget: int, blocks: int
) -> None:
    def full(replayer: Replayer, batch: Batch) -> None:
        assert sum(share.tokens for share in batch.shares) <= min(chunk_tokens, token_budget)
        running = [one for one in replayer.scheduler.state.resident.values() if one.state == "running"]
        assert {one.row for one in running if not one.prefilling} <= {share.request.row for share in batch.shares}

    run = run_traced(
        seed, Sarathi(chunk_tokens=chunk_tokens), full, blocks=blocks, token_budget=token_budget, max_running=12
    )
    ends = run.steps["end"].to_list()
    for one in run.requests.filter(status="completed", evictions=0).iter_rows(named=True):
        first = ends.index(one["first_token"])
        assert one["token_times"] == ends[first : first + len(one["token_times"])], "a token in every step"


def test_where_prompts_are_whole_sarathi_begins_one_while_a_token_of_the_chunk_is_left() -> None:
    rows = [request(0, 0.0, 3), request(1, 0.0, 6), request(2, 0.0, 2)]
    run = simulate(rows, [2, 2, 2], policy=Sarathi(chunk_tokens=4), max_running=3, token_budget=64, prefill="whole")
    assert run.column("admitted") == [0.0, 0.0, 0.01]
    assert run.steps["prefill_tokens"].to_list() == [9, 2, 0]


def test_the_larger_a_step_the_sooner_the_first_token_and_the_longer_the_gaps_of_others() -> None:
    # One decodes when a prompt of 1,000 comes.
    policies: list[str | Policy] = [Sarathi(chunk_tokens=32), Sarathi(chunk_tokens=128), Sarathi(), "prefill_first"]
    gaps, firsts = [], []
    for policy in policies:
        rows = [request(0, 0.0, 1), request(1, 0.05, 1000)]
        run = simulate(rows, [60, 2], policy=policy, max_running=2, token_budget=2048, cost=COST)
        times = token_times(run)[0]
        gaps.append(max(later - sooner for sooner, later in pairwise(times)))
        firsts.append(run.column("first_token")[1])
    assert gaps == sorted(set(gaps))
    assert firsts == sorted(set(firsts), reverse=True)
    # By hand, chunks of 512: 511 tokens of the prompt, then 489 over all 1,000, beside a decode over 7.
    assert gaps[2] == pytest.approx(0.010 + 489 * 0.0002 + 0.0005 + 1007 * 0.00001)


@dataclass
class Witness(Vllm):
    """vLLM, seen to evict the newest."""

    def on_evict(self, request: Request, step: Step) -> None:
        assert all(other.sequence < request.sequence for other in step.running)


@settings(max_examples=60)
@given(seed=st.integers(0, 999), blocks=st.integers(12, 40), threshold=st.sampled_from([None, 1, 3]))
def test_vllm_runs_its_list_in_order_evicts_the_newest_and_lets_nobody_join_in_such_a_step(
    seed: int, blocks: int, threshold: int | None
) -> None:
    def in_order(replayer: Replayer, batch: Batch) -> None:
        sequence = [share.request.sequence for share in batch.shares]
        assert sequence == sorted(sequence)
        if threshold is not None:
            assert all(share.tokens <= threshold for share in batch.shares)

    policy = Witness(long_prefill_token_threshold=threshold)
    run = run_traced(seed, policy, in_order, blocks=blocks, token_budget=8)
    assert (run.steps.filter(run.steps["evicted"] > 0)["admitted"] == 0).all()


def test_vllm_evicts_the_newest_and_takes_nobody_in_until_the_next_step() -> None:
    # Four blocks of one token. At 20 ms the first two need 3 each: the second goes, which leaves a block for the third,
    # who has waited since 15 ms. It joins at 30, behind the second, when the first is done.
    rows = [request(0), request(1), request(2, 0.015)]
    run = simulate(rows, [3, 3, 1], policy="vllm", max_running=3, blocks=4, block_size=1)
    assert token_times(run) == [[0.01, 0.02, 0.03], [0.01, 0.02, 0.04], [0.04]]
    assert run.column("evictions") == [0, 1, 0]
    assert run.steps["evicted"].to_list() == [0, 0, 1, 0]
    assert run.steps["admitted"].to_list() == [2, 0, 0, 2]


def test_vllm_computes_a_long_prompt_in_parts_and_the_short_one_behind_it_too() -> None:
    # Budget 4, at most 3 of one prompt: the second need not wait for the end of the first, and decodes behind it.
    def run(threshold: int | None) -> Replayed:
        rows = [request(0, 0.0, 9), request(1, 0.0, 1)]
        policy = Vllm(long_prefill_token_threshold=threshold)
        return simulate(rows, [1, 3], policy=policy, max_running=2, token_budget=4)

    assert token_times(run(None)) == [[0.03], [0.03, 0.04, 0.05]]
    parts = run(3)
    assert token_times(parts) == [[0.03], [0.01, 0.02, 0.03]]
    assert [[share.request.row for share in batch.shares] for batch in parts.batches] == [[0, 1]] * 3


def test_vllm_admits_whom_the_default_rule_keeps_waiting() -> None:
    # Two prompts of 2 in four blocks of one token: both fit, but not with a block for each to grow.
    found = {}
    for policy in ("vllm", "fifo"):
        rows = [request(0, 0.0, 2), request(1, 0.0, 2)]
        run = simulate(rows, [2, 2], policy=policy, max_running=2, blocks=4, block_size=1)
        found[policy] = run.column("admitted"), run.column("evictions")
    assert found == {"vllm": ([0.0, 0.0], [0, 1]), "fifo": ([0.0, 0.02], [0, 0])}


@pytest.mark.parametrize("policy", ["orca", "prefill_first", "sarathi", "vllm"])
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode[0] != "continuous"], ids=str)
@settings(max_examples=20)
@given(case=cases(limited=False))
def test_where_a_batch_runs_to_its_end_what_a_step_is_made_of_is_the_modes_affair(
    policy: str, mode: tuple[str, dict[str, Any]], case: Case
) -> None:
    found, fifo = replay(case, policy, mode), replay(case, "fifo", mode)
    for table in ("requests", "steps", "spans"):
        assert getattr(found, table).equals(getattr(fifo, table))

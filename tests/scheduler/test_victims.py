"""Whom vLLM's policy evicts, by name: three requests of different sizes in a pool that is full when one must grow."""

from __future__ import annotations

import pytest

from policies.vllm import Vllm
from replay.contract.simulation import request, simulate
from replay.executors.interface import Batch
from replay.replayer import Replayer


def evictions(evicts: str) -> list[int]:
    """Prompts of 4, 24 and 8 tokens in that order, 10 blocks of 4: 9 are taken at once, and in the second step the
    first needs one (the last that is free), and then the second, which finds none."""
    rows = [request(row, prompt=prompt) for row, prompt in enumerate((4, 24, 8))]
    left = simulate(rows, [4, 4, 4], policy=Vllm(evicts=evicts, admission="aggressive"), blocks=10, block_size=4)
    assert left.column("status") == ["completed"] * 3
    return left.column("evictions")


@pytest.mark.parametrize(
    ("evicts", "expected"),
    [
        ("newest", [0, 0, 1]),
        ("least_computed", [1, 0, 0]),
        ("most_computed", [0, 1, 0]),
    ],
)
def test_the_one_that_is_named_goes(evicts: str, expected: list[int]) -> None:
    assert evictions(evicts) == expected


def test_chance_takes_the_same_one_every_time() -> None:
    assert evictions("random") == evictions("random")
    assert sum(evictions("random")) >= 1


def test_prompts_in_chunks_do_not_evict_each_other_for_ever() -> None:
    steps = 0

    def check(replayer: Replayer, batch: Batch) -> None:
        nonlocal steps
        steps += 1
        assert steps < 200, "it does not end"

    # 15 blocks of 1 token, for two that take 13 and 11 in the end: whoever is ahead when they meet would have to go.
    policy = Vllm(evicts="most_computed", long_prefill_token_threshold=1)
    rows = [request(0, prompt=9), request(1, prompt=8)]
    left = simulate(rows, [5, 4], policy=policy, blocks=15, block_size=1, token_budget=4, check=check)
    assert left.column("status") == ["completed"] * 2
    assert sum(left.column("evictions")) > 0

"""Whom vLLM's policy evicts, by name: three requests of different sizes in a pool that is full when one must grow."""

from __future__ import annotations

import pytest

from policies.vllm import Vllm
from replay.contract.simulation import request, simulate


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

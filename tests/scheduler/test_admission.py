"""Admission rules: what each admits, by hand, and what each promises, on traces drawn at random."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from replay.contract.cases import MODES, Case, Engine, cases, check_outcome, engines, replay
from replay.contract.simulation import request, simulate
from replay.scheduler import policies

CONTINUOUS = [mode for mode in MODES if mode[0] == "continuous"]


@settings(max_examples=60)
@given(cases(), engines, st.sampled_from(CONTINUOUS), st.sampled_from(["fifo", "sjf", "fair"]))
def test_reserve_max_evicts_nobody(case: Case, engine: Engine, mode: tuple[str, dict[str, Any]], policy: str) -> None:
    replayed = replay(case, policies[policy](admission="reserve_max"), mode, engine)
    check_outcome(case, replayed)
    assert replayed.column("evictions") == [0] * len(case.outputs)


def test_reserve_max_counts_a_prompt_and_all_that_it_declares() -> None:
    """Ten blocks of 4 tokens: two of 8 + 12 take 5 blocks each, the third waits for the first to be over."""
    rows = [request(row, prompt=8, max_tokens=12) for row in range(3)]
    replayed = simulate(rows, [4, 12, 4], policy=policies["fifo"](admission="reserve_max"), blocks=10, block_size=4)
    assert replayed.column("admitted") == [0.0, 0.0, 0.04]


def test_reserve_max_lets_one_that_declares_more_than_the_pool_run_alone() -> None:
    rows = [request(0, prompt=4, max_tokens=1000), request(1, prompt=4, max_tokens=4)]
    replayed = simulate(rows, [5, 3], policy=policies["fifo"](admission="reserve_max"), blocks=10, block_size=4)
    assert replayed.column("admitted") == [0.0, 0.05]
    assert replayed.column("status") == ["completed", "completed"]

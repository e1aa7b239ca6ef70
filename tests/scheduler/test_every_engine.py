"""The invariants with a prefix cache, with swapping, with steps that overlap, and with all of these; in tiny pools,
under policies that change their minds, and when clients go away.

What is in each block is followed all the while: every answer is the one that the request alone would get.
"""

from __future__ import annotations

from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from replay.contract.cases import MODES, Case, Engine, Fickle, cases, check_outcome, check_step, engines, replay
from replay.contract.simulation import simulate
from replay.executors.interface import Batch
from replay.replayer import Replayer
from replay.scheduler import policies

CONTINUOUS = [mode for mode in MODES if mode[0] == "continuous"]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("policy", list(policies))
@settings(max_examples=25)
@given(case=cases(), engine=engines)
def test_the_books_balance_on_every_engine(
    policy: str, mode: tuple[str, dict[str, Any]], case: Case, engine: Engine
) -> None:
    check_outcome(case, replay(case, policy, mode, engine))


@pytest.mark.parametrize("mode", CONTINUOUS, ids=str)
@settings(max_examples=100)
@given(case=cases(), engine=engines)
def test_a_policy_that_changes_its_mind_loses_no_token(
    mode: tuple[str, dict[str, Any]], case: Case, engine: Engine
) -> None:
    check_outcome(case, replay(case, Fickle(), mode, engine))


@pytest.mark.parametrize("mode", MODES, ids=str)
@settings(max_examples=60)
@given(case=cases(), engine=engines, seed=st.integers(0, 1000))
def test_clients_that_go_away_leave_every_block_behind(
    mode: tuple[str, dict[str, Any]], case: Case, engine: Engine, seed: int
) -> None:
    random = Random(seed)

    def leave(replayer: Replayer, now: float) -> None:
        """One of those who wait or run goes, now and then, unless a step under way has to do with it."""
        scheduler = replayer.scheduler
        here = [*scheduler.state.waiting.values(), *scheduler.state.resident.values()]
        if here and random.random() < 0.2:
            gone = random.choice(here)
            over = gone.status in ("cancelled", "timed_out")  # and held as padding
            assert scheduler.cancel(gone, now, reason="client gone") or over or engine.overlap
            scheduler.check_integrity()

    replayers: list[Replayer] = []

    def check(replayer: Replayer, batch: Batch) -> None:
        check_step(replayer, batch)
        replayers[:] = [replayer]

    replayed = simulate(
        case.rows(),
        case.outputs,
        mode=mode[0],
        policy=Fickle() if mode in CONTINUOUS else "fifo",
        blocks=case.blocks,
        block_size=case.block_size,
        limits=case.limits,
        prompts=case.ids(),
        verify=True,
        check=check,
        turn=leave,
        prefix_cache=engine.prefix_cache,
        host_blocks=engine.host_blocks,
        overlap=engine.overlap,
        **mode[1],
    )
    check_outcome(case, replayed)
    for replayer in replayers:
        pool = replayer.scheduler.state.pool
        assert pool.free_blocks == pool.blocks, "every block came back"
        assert pool.host.free_blocks == pool.host.blocks, "and every host block"


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("policy", list(policies))
@settings(max_examples=15)
@given(case=cases())
def test_where_no_prompts_are_alike_a_cache_changes_nothing(
    policy: str, mode: tuple[str, dict[str, Any]], case: Case
) -> None:
    case.alike = [0] * len(case.alike)
    case.blocks = 400
    without = replay(case, policy, mode)
    assume(not any(without.column("evictions")))  # who was evicted, for its slot, finds its own blocks again
    cached = replay(case, policy, mode, Engine(prefix_cache=True))
    for table in ("steps", "spans"):
        assert getattr(cached, table).equals(getattr(without, table))
    assert cached.requests.drop("cached_tokens").equals(without.requests.drop("cached_tokens"))
    assert not any(cached.column("cached_tokens"))


@pytest.mark.parametrize("mode", CONTINUOUS, ids=str)
@settings(max_examples=60)
@given(case=cases(limited=False), engine=engines, policy=st.sampled_from(list(policies)))
def test_overlapping_steps_give_everybody_the_same_tokens(
    mode: tuple[str, dict[str, Any]], case: Case, engine: Engine, policy: str
) -> None:
    engine.overlap = True
    overlapping = replay(case, policy, mode, engine)
    engine.overlap = False
    one_by_one = replay(case, policy, mode, engine)
    assert overlapping.column("generated_tokens") == one_by_one.column("generated_tokens")
    assert overlapping.column("status") == one_by_one.column("status")


@settings(max_examples=60)
@given(
    case=cases(limited=False), engine=engines, policy=st.sampled_from(list(policies)), mode=st.sampled_from(MODES[1:])
)
def test_on_no_engine_a_later_request_changes_the_past(
    case: Case, engine: Engine, policy: str, mode: tuple[str, dict[str, Any]]
) -> None:
    before = replay(case, policy, mode, engine)
    case.add(arrival=10.0, prompt=3, output=2)  # long after the others have ended
    after = replay(case, policy, mode, engine)
    assert after.requests.filter(pl.col("row") < len(case.outputs) - 1).equals(before.requests)

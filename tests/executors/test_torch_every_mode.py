"""The same greedy tokens under every mode and policy, through the real scheduler, with and without evictions."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from greedy import ANSWER, MODELS, PROMPTS, paged_executor, reference, workload

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.clock import VirtualClock
from replay.executors.interface import Batch
from replay.executors.torch.executor import TorchExecutor
from replay.pool import KVPool
from replay.predictors import predictors
from replay.records import Records
from replay.replayer import Replayer
from replay.scheduler import modes
from replay.scheduler import policies as policy_registry

ROOM = 64  # blocks of 16 tokens: more than the 6 requests need together
NARROW = (8, 8, 11)  # blocks at which each continuous mode must evict: the longest needs 6, all together 20

MODES: list[tuple[str, dict[str, Any]]] = [
    ("static", {"batch_size": 4}),
    ("static", {"batch_size": 6}),
    ("dynamic", {"max_batch_size": 4, "max_wait_ms": 0.0}),
    ("continuous", {"max_running": 6, "token_budget": 256, "prefill": "whole"}),
    ("continuous", {"max_running": 6, "token_budget": 16, "prefill": "chunked"}),
    ("continuous", {"max_running": 3, "token_budget": 7, "prefill": "chunked"}),
]


@cache
def executor(name: str) -> TorchExecutor:
    return paged_executor(name, blocks=ROOM)


class Watched:
    """The torch executor, and what was padded of its steps."""

    def __init__(self, inner: TorchExecutor) -> None:
        self.inner = inner
        self.cost, self.max_context, self.overlaps = inner.cost, inner.max_context, inner.overlaps
        self.describe, self.prepare, self.collect = inner.describe, inner.prepare, inner.collect
        self.padding_tokens = 0

    def submit(self, batch: Batch) -> None:
        self.padding_tokens += batch.padding_tokens
        self.inner.submit(batch)


def replay(
    name: str, mode: str, settings: dict[str, Any], policy: str, blocks: int
) -> tuple[list[list[int]], int, int]:
    """The answers by row, how many evictions there were, and how many tokens of padding."""
    load, engine, clock = workload(), Watched(executor(name)), VirtualClock()
    engine.prepare(load)
    replayer = Replayer(
        workload=load,
        executor=engine,
        clock=clock,
        policy=policy_registry[policy](),
        mode=modes[mode](**settings),
        pool=KVPool(blocks, 16),
        predictor=predictors["oracle"](),
        records=Records(),
    )
    assert replayer.run()
    answers = [engine.inner.outputs(request.row) for request in load.requests]
    return answers, sum(request.evictions for request in load.requests), engine.padding_tokens


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("mode", "settings"), MODES)
def test_every_mode_answers_as_generate_does(name: str, mode: str, settings: dict[str, Any]) -> None:
    answers, evictions, padding_tokens = replay(name, mode, settings, "fifo", ROOM)
    assert answers == reference(name).answers
    assert [len(answer) for answer in answers] == [ANSWER] * len(PROMPTS)
    assert evictions == 0
    assert (padding_tokens > 0) == (mode != "continuous")


@pytest.mark.parametrize(
    ("settings", "blocks"), list(zip([each for mode, each in MODES if mode == "continuous"], NARROW, strict=True))
)
def test_a_pool_too_small_evicts_and_changes_no_token(settings: dict[str, Any], blocks: int) -> None:
    answers, evictions, _ = replay("llama", "continuous", settings, "fifo", blocks)
    assert answers == reference("llama").answers
    assert evictions > 0


@pytest.mark.parametrize("policy", list(policy_registry))
@pytest.mark.parametrize(("mode", "settings"), [MODES[0], MODES[2], MODES[4]])
def test_every_policy_answers_the_same(policy: str, mode: str, settings: dict[str, Any]) -> None:
    answers, _, _ = replay("llama", mode, settings, policy, NARROW[0])
    assert answers == reference("llama").answers

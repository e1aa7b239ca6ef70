"""The same greedy tokens as `generate` where blocks are shared, swapped, computed again, requests pause and steps
overlap: through the real scheduler, in a pool too small for all, under a policy that evicts and pauses at random."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import pytest
import torch
from greedy import ANSWER, DEVICE, MODELS, SEED, paged_executor
from transformers import AutoConfig

from replay.block_keys import name_blocks
from replay.clock import VirtualClock
from replay.contract.cases import Fickle
from replay.executors.torch.computing import Computing
from replay.executors.torch.executor import TorchExecutor
from replay.executors.torch.models import dummy_model
from replay.pool import KVPool
from replay.predictors import Oracle
from replay.records import Records
from replay.replayer import Replayer
from replay.request import Request, Workload
from replay.scheduler import Step, modes

BLOCKS, HOST_BLOCKS, BLOCK_SIZE = 14, 12, 16  # the longest needs 6, all together 26
ALIKE = (32, 48, 48, 16, 40, 33)  # tokens that each prompt has in common with the others
OWN = 6  # tokens of its own

SETTINGS: list[dict[str, Any]] = [
    {"max_running": 6, "token_budget": 16},
    {"max_running": 3, "token_budget": 7},
    {"max_running": 3, "token_budget": 256, "prefill": "whole"},
]


@dataclass
class Restless(Fickle):
    """As Fickle, and in some steps only one of those who run gets tokens: the others pause, and keep their blocks."""

    pauses: int = 12

    def schedule(self, step: Step) -> None:
        running = step.running
        if self.pauses and len(running) > 1 and step.random.random() < 0.5 and step.run(step.random.choice(running)):
            self.pauses -= 1
        else:
            super().schedule(step)


def prompts() -> dict[int, list[int]]:
    draw = Random(SEED)
    head = [draw.randrange(512) for _ in range(max(ALIKE))]
    return {row: [*head[:alike], *(draw.randrange(512) for _ in range(OWN))] for row, alike in enumerate(ALIKE)}


def workload() -> Workload:
    known = prompts()
    rows = [Request(row, str(row), 0.0, len(prompt), ANSWER) for row, prompt in known.items()]
    return Workload(rows, [ANSWER] * len(rows), prompts=dict(known))


@cache
def generated(name: str) -> list[list[int]]:
    """What `generate` answers to each prompt alone."""
    config = AutoConfig.for_model(name, **MODELS[name])
    model = dummy_model(config, device=DEVICE, dtype=torch.float32, seed=SEED, attention="sdpa")
    answers = []
    for prompt in prompts().values():
        result = model.generate(torch.tensor([prompt], device=DEVICE), max_new_tokens=ANSWER, do_sample=False)
        answers.append(result[0, len(prompt) :].tolist())
    return answers


@cache
def executor(name: str, *, overlap: bool) -> TorchExecutor:
    computing = Computing(overlap=overlap, host_blocks=HOST_BLOCKS)
    return paged_executor(name, blocks=BLOCKS, block_size=BLOCK_SIZE, computing=computing)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_shared_swapped_and_recomputed_blocks_and_pauses_answer_as_generate_does(
    name: str, overlap: bool, settings: dict[str, Any]
) -> None:
    load, engine, records = workload(), executor(name, overlap=overlap), Records()
    name_blocks(load.requests, engine.prepare(load), BLOCK_SIZE)
    replayer = Replayer(
        workload=load,
        executor=engine,
        clock=VirtualClock(),
        policy=Restless(),
        mode=modes["continuous"](**settings),
        pool=KVPool(BLOCKS, BLOCK_SIZE, host_blocks=HOST_BLOCKS, prefix_cache=True),
        predictor=Oracle(),
        records=records,
    )
    assert replayer.run()
    assert [engine.outputs(request.row) for request in load.requests] == generated(name)
    assert sum(request.cached_tokens or 0 for request in load.requests) > 0, "prefixes are shared"
    assert sum(request.swaps for request in load.requests) > 0
    assert sum(request.recomputed_tokens for request in load.requests) > 0
    spans = records.spans.take()
    assert spans is not None
    assert "paused" in spans["kind"].to_pylist()
    pool = replayer.scheduler.state.pool
    assert (pool.free_blocks, pool.host.free_blocks) == (BLOCKS, HOST_BLOCKS)
    replayer.scheduler.check_integrity()

"""Small random models, what transformers' own `generate` answers with them, and a driver that hands out shares.

The driver stands where the scheduler does: it keeps block tables in a real pool and moves requests on, and lets a test
choose who computes how many tokens.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from transformers import AutoConfig

from replay.executors.interface import Batch, Padding, Share
from replay.executors.torch.computing import Computing
from replay.executors.torch.executor import TorchExecutor
from replay.executors.torch.models import dummy_model
from replay.pool import KVPool
from replay.request import Request, Workload

CPU = torch.device("cpu")
DEVICE = torch.device(os.environ.get("REPLAY_TEST_DEVICE", "cpu"))  # "cuda" where there is one
PROMPTS = (1, 5, 16, 17, 33, 64)
ANSWER = 24
SEED = 2
MARGIN = 1e-3  # between the two largest logits, relative to the largest: a hundred times the noise of float32

_COMMON: dict[str, Any] = {"vocab_size": 512, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
_SMALL: dict[str, Any] = {
    **_COMMON,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
}

# Deviations and the seed were chosen so that each answer wanders and its argmax stands clear: see `reference`.
MODELS: dict[str, dict[str, Any]] = {
    "llama": {**_SMALL, "num_hidden_layers": 3, "num_key_value_heads": 2, "initializer_range": 0.2},
    "qwen2": {**_SMALL, "num_hidden_layers": 2, "num_key_value_heads": 1, "initializer_range": 0.3},
    "qwen3": {**_SMALL, "num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 32, "initializer_range": 0.3},
    "gpt2": {**_COMMON, "n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 256, "initializer_range": 0.3},
}


def workload() -> Workload:
    """Six requests without content, of the lengths around a block of 16."""
    requests = [Request(row, str(row), 0.0, prompt, ANSWER) for row, prompt in enumerate(PROMPTS)]
    return Workload(requests, [ANSWER] * len(PROMPTS))


def paged_executor(
    name: str, *, blocks: int = 64, block_size: int = 16, computing: Computing | None = None
) -> TorchExecutor:
    """An executor over one of the small models."""
    model = dummy_model(AutoConfig.for_model(name, **MODELS[name]), device=DEVICE, dtype=torch.float32, seed=SEED)
    return TorchExecutor(model, name=name, blocks=blocks, block_size=block_size, computing=computing)


@dataclass(frozen=True)
class Reference:
    """What `generate` answers to each prompt alone, and how clearly its argmax stood out, over all tokens."""

    answers: list[list[int]]
    margin: float


@cache
def reference(name: str) -> Reference:
    """`generate`, greedy, on the same weights with transformers' own attention and cache, one request at a time."""
    config = AutoConfig.for_model(name, **MODELS[name])
    model = dummy_model(config, device=DEVICE, dtype=torch.float32, seed=SEED, attention="sdpa")
    executor = paged_executor(name)
    executor.prepare(workload())
    answers, margins = [], []
    for row in range(len(PROMPTS)):
        prompt = torch.tensor([executor.prompt(row)], device=DEVICE)
        result = model.generate(
            prompt, max_new_tokens=ANSWER, do_sample=False, output_logits=True, return_dict_in_generate=True
        )
        answers.append(result.sequences[0, prompt.shape[1] :].tolist())
        largest = torch.stack(result.logits)[:, 0].topk(2).values
        margins.append(float(((largest[:, 0] - largest[:, 1]) / largest.abs().amax()).min()))
    return Reference(answers, min(margins))


class Driver:
    """Requests of `workload`, moved on by the shares that a test asks for; `scatter` shuffles the pool's blocks."""

    def __init__(self, executor: TorchExecutor, *, blocks: int = 64, block_size: int = 16, scatter: int | None = None):
        self.executor = executor
        self.pool = KVPool(blocks, block_size)
        if scatter is not None:
            random.Random(scatter).shuffle(self.pool._blank)
        self.requests = workload().requests
        self.steps = 0
        executor.prepare(Workload(self.requests, [ANSWER] * len(self.requests)))

    def unfinished(self) -> list[int]:
        """Rows that have not got their answer."""
        return [request.row for request in self.requests if request.generated < ANSWER]

    def step(self, tokens: Mapping[int, int | None], padding: Padding | None = None) -> None:
        """One step: so many tokens for each row, in this order; None for all that are known."""
        self.run(Batch(self.shares(tokens), padding))

    def shares(self, tokens: Mapping[int, int | None]) -> list[Share]:
        """The shares of such a step, for which their tables have grown."""
        shares = []
        for row, wanted in tokens.items():
            request = self.requests[row]
            count = request.todo if wanted is None else min(wanted, request.todo)
            assert self.pool.grow(row, request.computed + count)
            table = self.pool.tables[row]
            shares.append(Share(request, request.computed, count, samples=count == request.todo, blocks=table))
        return shares

    def run(self, batch: Batch) -> None:
        """Compute a step, and move its requests on."""
        self.executor.submit(batch)
        sampled = iter(self.executor.collect())
        for share in batch.shares:
            request = share.request
            request.computed += share.tokens
            if share.samples:
                assert 0 <= next(sampled) < 512
                request.generated += 1
            if request.generated == ANSWER:
                self.pool.release(request.row)
        assert next(sampled, None) is None
        self.pool.check_integrity()
        self.steps += 1

    def padding(self, tokens: dict[int, int], rows: int, width: int, context: int) -> Padding:
        """A padded layout for these tokens: so many rows, columns and tokens of context more than they need."""
        requests = {self.requests[row]: min(wanted, self.requests[row].todo) for row, wanted in tokens.items()}
        width += max(requests.values())
        end = max(request.computed + count for request, count in requests.items())
        return Padding(len(requests) + rows, width, max(width, end) + context)

    def evict(self, row: int) -> None:
        """Lose what was computed of a request."""
        self.pool.release(row)
        self.requests[row].computed = 0

    def spoil(self) -> None:
        """Write noise over all blocks that nobody holds, as requests that come and go do."""
        cache = self.executor._cache
        free = torch.tensor(
            sorted({*range(cache.blocks + 1)} - {b for table in self.pool.tables.values() for b in table})
        )
        for pool in cache.pools:
            noise = torch.randn(2, len(free), *pool.shape[2:], generator=torch.Generator().manual_seed(1))
            pool[:, free.to(pool.device)] = noise.to(pool)

    def answers(self) -> list[list[int]]:
        """The answers so far, by row."""
        return [self.executor.outputs(row) for row in range(len(self.requests))]

"""Decode steps at several batch sizes: which steps they are, and what cannot be timed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from replay.ceilings import Ceilings
from replay.errors import ExperimentError
from replay.executors.interface import Batch, CostModel, Description, TokenIds
from replay.executors.torch.probing.batch_sizes import time_batch_sizes
from replay.executors.torch.probing.decodes import LEAST, MOST, UNTIMED, blocks_needed, longest_context, time_decodes
from replay.request import Workload

CEILINGS = Ceilings("A Processor", 1, "float32", 1e9, 1e9, 1e9, {}, "2026-01-02T03:04:05+00:00", {})


class Recorder:
    """An executor that computes nothing and keeps what it was given."""

    cost = CostModel(fixed=0.0)
    max_context: int | None = None
    kv_blocks = 1000
    host_blocks = 0
    overlaps = False

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.workload: Workload | None = None

    def describe(self) -> Description:
        return Description("recorder", simulated=True)

    def prepare(self, workload: Workload) -> Sequence[TokenIds]:
        self.workload = workload
        return []

    def submit(self, batch: Batch) -> None:
        self.batches.append(batch)

    def collect(self) -> list[int]:
        return [0] * len(self.batches[-1].shares)


@pytest.mark.parametrize(("batch_size", "context"), [(1, 256), (3, 100), (2, 1)])
def test_every_request_decodes_one_token_a_step_in_blocks_of_its_own(batch_size: int, context: int) -> None:
    executor = Recorder()
    decoded = time_decodes(executor, batch_size=batch_size, context=context, block_size=16)
    assert len(executor.batches) == UNTIMED + decoded.steps
    assert LEAST <= decoded.steps <= MOST
    assert executor.workload is not None
    prompt = executor.workload.requests[0].prompt_tokens
    for step, batch in enumerate(executor.batches):
        assert [(share.start, share.tokens, share.samples) for share in batch.shares] == (
            [(prompt - 1 + step, 1, True)] * batch_size
        )
        blocks = [block for share in batch.shares for block in share.blocks]
        assert len(set(blocks)) == len(blocks)
        assert max(blocks) < blocks_needed(batch_size, context, 16)
        assert batch.context_tokens <= len(blocks) * 16
    timed = executor.batches[UNTIMED:]
    assert decoded.context == pytest.approx(sum(batch.context_tokens for batch in timed) / batch_size / decoded.steps)
    assert sum(not share.prefill for batch in timed for share in batch.shares) == batch_size * decoded.steps
    if context > MOST and decoded.steps == MOST:
        assert decoded.context == pytest.approx(context, abs=1)
    assert executor.batches[-1].shares[0].start < longest_context(context)
    assert decoded.tokens_per_second == pytest.approx(batch_size / decoded.seconds)


def test_a_context_that_the_model_does_not_take_is_told() -> None:
    with pytest.raises(ExperimentError, match=r"--context 40000: .* and tiny takes at most 32,768"):
        time_batch_sizes(
            CEILINGS,
            model="tiny",
            device="cpu",
            threads=1,
            dtype="float32",
            linears="plain",
            batch_sizes=[1],
            context=40_000,
            price_per_hour=None,
        )

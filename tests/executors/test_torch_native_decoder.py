"""The decoder that the compiled code computes in one call: the tokens of `generate`, the same bits in any company."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from greedy import MODELS, PROMPTS, Driver, paged_executor, reference

from replay.executors.torch.computing import Computing
from replay.executors.torch.executor import TorchExecutor
from replay.executors.torch.layout import Row
from replay.executors.torch.native.decoder import NativeDecoder
from replay.executors.torch.native.library import load

pytestmark = pytest.mark.skipif(load()[0] is None, reason=f"there is no compiled code here: {load()[1]}")

FUSED = ("llama", "qwen2", "qwen3")  # without biases and with them, and with norms of queries and keys


@cache
def executor(name: str, linears: str = "native", attention: str = "native", fused: bool = True) -> TorchExecutor:
    return paged_executor(name, computing=Computing(linears=linears, attention=attention, fused=fused))


def used(engine: TorchExecutor) -> bool:
    return isinstance(engine._steps._forward, NativeDecoder)  # type: ignore[attr-defined]  # of TorchSteps


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("attention", ["native", "torch"])
def test_the_tokens_of_generate(name: str, fused: bool, attention: str) -> None:
    engine = executor(name, "native", attention, fused)
    assert used(engine) == (name in FUSED and fused and attention == "native")
    driver = Driver(engine, scatter=2)
    while rows := driver.unfinished():
        driver.step(dict.fromkeys(rows, 16))
    assert driver.answers() == reference(name).answers


@pytest.mark.parametrize("name", FUSED)
def test_padded_steps_have_the_same_tokens(name: str) -> None:
    driver = Driver(executor(name), scatter=3)
    while rows := driver.unfinished():
        tokens = dict.fromkeys(rows, 20)
        driver.step(tokens, driver.padding(tokens, rows=2, width=3, context=9))
        driver.spoil()
    assert driver.answers() == reference(name).answers


@pytest.mark.parametrize("linears", ["native", "fp16"])
@pytest.mark.parametrize("name", FUSED)
def test_logits_have_the_same_bits_alone_and_in_company(name: str, linears: str) -> None:
    engine = executor(name, linears)
    assert linears != "native" or used(engine)
    if not used(engine):
        pytest.skip("float16 is FBGEMM's here, which does not promise it")
    ids = (np.arange(60, dtype=np.int32) * 31) % 512
    blocks = [[4 * i + j for j in range(4)] for i in range(len(PROMPTS))]
    lengths = [60, 1, 33, 16, 47, 5]
    rows = [Row(ids[:length], 0, table, samples=True) for length, table in zip(lengths, blocks, strict=True)]
    kept: list[torch.Tensor] = []
    sample = engine._steps._sample  # type: ignore[attr-defined]  # of TorchSteps
    engine._steps._sample = lambda logits, draws: (kept.append(logits.clone()), sample(logits, draws))[1]  # type: ignore[attr-defined]
    try:
        engine.compute(rows)
        for row in rows:
            engine.compute([row])
    finally:
        engine._steps._sample = sample  # type: ignore[attr-defined]
    together, alone = kept[0], torch.cat(kept[1:])
    assert torch.equal(together, alone)

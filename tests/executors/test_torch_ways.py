"""The same greedy tokens whichever way a step is computed: fused or by modules, ahead of its ids, swapped and back."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from greedy import ANSWER, DEVICE, MODELS, PROMPTS, SEED, Driver, paged_executor, reference
from transformers import AutoConfig, PreTrainedModel

from replay.errors import EngineError
from replay.executors.interface import Batch, Share
from replay.executors.torch.computing import Computing, Sampling
from replay.executors.torch.executor import TorchExecutor
from replay.executors.torch.models import dummy_model

ROWS = range(len(PROMPTS))
FUSED = ("llama", "qwen2", "qwen3")


@cache
def executor(name: str, computing: Computing) -> TorchExecutor:
    return paged_executor(name, computing=computing)


def finish(driver: Driver) -> list[list[int]]:
    while rows := driver.unfinished():
        driver.step(dict.fromkeys(rows, 16))
    return driver.answers()


@pytest.mark.parametrize("name", MODELS)
def test_by_modules(name: str) -> None:
    engine = executor(name, Computing(fused=False))
    assert engine.describe().details["forward"] == "modules"
    assert finish(Driver(engine, scatter=1)) == reference(name).answers


@pytest.mark.parametrize("name", FUSED)
def test_those_like_llama_are_fused_by_default(name: str) -> None:
    assert executor(name, Computing()).describe().details["forward"] == "fused"


def test_others_are_not() -> None:
    assert executor("gpt2", Computing()).describe().details["forward"] == "modules"


@pytest.mark.skipif(DEVICE.type != "cpu", reason="packed weights are for a CPU")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("fused", [True, False])
def test_packed_by_onednn(name: str, fused: bool) -> None:
    engine = executor(name, Computing(linears="onednn", fused=fused))
    assert finish(Driver(engine, scatter=2)) == reference(name).answers


@pytest.mark.skipif(DEVICE.type != "cpu", reason="packed weights are for a CPU")
@pytest.mark.parametrize("name", MODELS)
def test_float16_weights_agree_with_nearly_all_tokens(name: str) -> None:
    # Not the same weights, so not the same tokens for sure: a token that turns takes the rest of its answer along.
    answers = finish(Driver(executor(name, Computing(linears="fp16")), scatter=2))
    pairs = [
        pair
        for ours, theirs in zip(answers, reference(name).answers, strict=True)
        for pair in zip(ours, theirs, strict=True)
    ]
    assert sum(ours == theirs for ours, theirs in pairs) / len(pairs) > 0.8


def test_a_float16_pool_keeps_the_answers_long() -> None:
    answers = finish(Driver(executor("llama", Computing(kv_dtype=torch.float16)), scatter=2))
    assert [len(answer) for answer in answers] == [ANSWER] * len(PROMPTS)


@pytest.mark.parametrize("name", MODELS)
def test_steps_handed_over_before_the_ids_of_the_one_before_are_known(name: str) -> None:
    engine = executor(name, Computing(overlap=True))
    assert engine.overlaps
    driver = Driver(engine, scatter=3)
    flights: list[Batch] = []
    while rows := driver.unfinished():
        shares = []
        for row in rows:
            request = driver.requests[row]
            count = min(request.todo, 16)
            assert driver.pool.grow(row, request.computed + count)
            table = driver.pool.tables[row]
            shares.append(Share(request, request.computed, count, samples=count == request.todo, blocks=table))
        flights.append(Batch(shares))
        engine.submit(flights[-1])
        for share in shares:  # as far as can be said without the ids
            share.request.computed += share.tokens
            share.request.generated += share.samples
        if len(flights) > 1:
            engine.collect()
            flights.pop(0)
    engine.collect()
    assert driver.answers() == reference(name).answers


@pytest.mark.parametrize("name", MODELS)
def test_swapped_out_and_into_other_blocks(name: str) -> None:
    engine = executor(name, Computing(host_blocks=12))
    driver = Driver(engine, scatter=4)
    for _ in range(5):
        driver.step(dict.fromkeys(driver.unfinished(), 16))
    moved: dict[int, list[int]] = {}
    out, free = [], list(range(11, -1, -1))
    for row in (5, 1, 3):
        table = list(driver.pool.tables[row])
        moved[row] = [free.pop() for _ in table]
        out += list(zip(table, moved[row], strict=True))
        driver.pool.release(row)
    others = [row for row in driver.unfinished() if row not in moved]
    shares = driver.shares(dict.fromkeys(others, 16))
    driver.run(Batch(shares, swap_out=out))  # the others grow, maybe into what has become free
    driver.spoil()
    back = []
    for row in moved:
        assert driver.pool.grow(row, driver.requests[row].computed)
        back += list(zip(moved[row], driver.pool.tables[row], strict=True))
    shares = driver.shares(dict.fromkeys(driver.unfinished(), 16))
    driver.run(Batch(shares, swap_in=back))
    assert finish(driver) == reference(name).answers


def test_a_model_that_only_looks_like_llama_is_found_out() -> None:
    config = AutoConfig.for_model("llama", **MODELS["llama"])
    model: PreTrainedModel = dummy_model(config, device=DEVICE, dtype=torch.float32, seed=SEED)
    first = model.model.layers[0].mlp
    first.act_fn = torch.nn.GELU()  # its configuration still says silu
    with pytest.raises(EngineError, match=r"not the decoder that its type promises.*engine\.fused = false"):
        TorchExecutor(model, name="odd", blocks=8, block_size=16)


@pytest.mark.skipif(DEVICE.type != "cpu", reason="on another device other sums decide ties")
def test_drawn_tokens_are_a_requests_own_whatever_is_computed_beside_them() -> None:
    engine = executor("llama", Computing(attention="torch", sampling=Sampling(temperature=1.0, top_k=50, top_p=0.95)))
    together = Driver(engine, scatter=1)
    finish(together)
    alone = Driver(engine, scatter=2)
    for row in ROWS:
        while row in alone.unfinished():
            alone.step({row: 7})
    assert alone.answers() == together.answers() != reference("llama").answers
    assert len({tuple(answer) for answer in alone.answers()}) == len(PROMPTS)


def test_a_small_temperature_is_greedy() -> None:
    engine = executor("qwen2", Computing(sampling=Sampling(temperature=1e-6)))
    assert finish(Driver(engine)) == reference("qwen2").answers


def test_how_far_it_agrees_is_measured() -> None:
    assert executor("llama", Computing()).describe().details["agreement"] == 1.0
    assert 0.9 < executor("llama", Computing(linears="fp16")).describe().details["agreement"] <= 1.0  # type: ignore[operator]


def test_copies_are_part_of_the_cost() -> None:
    with_room = paged_executor("llama", computing=Computing(host_blocks=4))
    assert with_room.warm_up(rows=2, tokens=16, context=32, seconds=0.01).swap > 0
    without = paged_executor("llama")
    assert without.warm_up(rows=2, tokens=16, context=32, seconds=0.01).swap == 0


@pytest.mark.skipif(DEVICE.type != "cpu", reason="Triton's kernels are for CUDA")
def test_triton_without_a_gpu_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(EngineError, match="'triton' cannot be used: its kernels are for a CUDA device, and the model"):
        paged_executor("llama", computing=Computing(attention="triton"))

"""What the executor keeps and says beside its tokens: state, warm-up, description."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from greedy import ANSWER, CPU, MODELS, Driver, paged_executor, reference, workload
from transformers import AutoConfig, PreTrainedModel

from replay.executors.interface import Batch, Executor, Padding, Share
from replay.executors.torch import kv_cache
from replay.executors.torch.computing import Computing
from replay.executors.torch.decoder import Decoder
from replay.executors.torch.executor import TorchExecutor
from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.models import dummy_model
from replay.executors.torch.native.library import load
from replay.executors.torch.operations import TorchOperations
from replay.executors.torch.warm_up import grid


@pytest.fixture(scope="module")
def executor() -> TorchExecutor:
    return paged_executor("llama")


def finish(driver: Driver) -> list[list[int]]:
    while rows := driver.unfinished():
        driver.step(dict.fromkeys(rows))
    return driver.answers()


def test_it_is_an_executor(executor: TorchExecutor) -> None:
    interface: Executor = executor
    assert interface.max_context == 256


def test_prepare_forgets_the_cell_before(executor: TorchExecutor) -> None:
    half = Driver(executor)
    for _ in range(5):
        half.step(dict.fromkeys(half.unfinished()))
    executor.submit(Batch([Share(half.requests[0], 5, 1, True, half.pool.tables[0])]))  # never collected
    driver = Driver(executor)
    assert driver.answers() == [[] for _ in driver.requests]
    assert finish(driver) == reference("llama").answers


def test_steps_alternate(executor: TorchExecutor) -> None:
    driver = Driver(executor)
    batch = Batch([Share(driver.requests[1], 0, 5, True, [0])])
    with pytest.raises(AssertionError, match="no step to collect"):
        executor.collect()
    executor.submit(batch)
    with pytest.raises(AssertionError, match="collect the step before"):
        executor.submit(batch)
    assert executor.collect() == reference("llama").answers[1][:1]


def test_shares_beyond_what_is_known_are_bugs(executor: TorchExecutor) -> None:
    driver = Driver(executor)
    with pytest.raises(AssertionError, match="6 tokens asked for, 5 known"):
        executor.submit(Batch([Share(driver.requests[1], 0, 6, True, [0])]))
    with pytest.raises(AssertionError, match="sampled only after the last"):
        executor.submit(Batch([Share(driver.requests[1], 0, 4, True, [0])]))


def test_a_step_that_samples_nothing(executor: TorchExecutor) -> None:
    driver = Driver(executor)
    executor.submit(Batch([Share(driver.requests[5], 0, 30, False, [3, 1])]))
    assert executor.collect() == []
    assert executor.outputs(5) == []


def test_a_warm_up_fits_the_cost_and_leaves_nothing_behind() -> None:
    executor = paged_executor("llama", blocks=24)  # fewer than the grid would like
    guess = executor.cost
    fitted = executor.warm_up(rows=4, tokens=64, context=10_000, seconds=0.05)
    assert executor.cost is fitted
    assert fitted != guess
    assert min(fitted.fixed, fitted.prefill, fitted.decode, fitted.context) >= 0
    assert fitted.seconds(decode=4, context=400) > 0
    assert finish(Driver(executor, blocks=24, scatter=4)) == reference("llama").answers


@pytest.mark.parametrize(("rows", "tokens", "context"), [(1, 1, 1), (8, 256, 512), (3, 500, 40)])
def test_the_grid_stays_within_its_bounds(rows: int, tokens: int, context: int) -> None:
    for probe in grid(rows, tokens, context):
        batch = probe.rows(blocks=7, block_size=16)
        assert 1 <= len(batch) <= rows + 1
        assert all(len(row.ids) <= tokens and row.start >= 0 and row.end <= context for row in batch)
        assert all(0 <= block < 7 for row in batch for block in row.blocks)


def test_what_it_says_of_itself(executor: TorchExecutor) -> None:
    description = executor.describe()
    assert (description.kind, description.simulated) == ("torch", False)
    expected = {
        "device": "cpu",
        "model": "llama",
        "architecture": "LlamaForCausalLM",
        "weights": "dummy",
        "dtype": "float32",
        "attention": "torch" if load()[0] is None else "native",
        "forward": "fused",
        "linears": "plain",
        "kv_blocks": 64,
        "torch": torch.__version__,
    }
    assert expected.items() <= description.details.items()
    whole = dummy_model(AutoConfig.for_model("llama", **MODELS["llama"]), device=CPU, dtype=torch.float32, seed=0)
    assert description.details["parameters"] == sum(parameter.numel() for parameter in whole.parameters())


def test_bfloat16_computes_too() -> None:
    config = AutoConfig.for_model("llama", **MODELS["llama"])
    model = dummy_model(config, device=CPU, dtype=torch.bfloat16, seed=0)
    executor = TorchExecutor(model, name="llama", blocks=64, block_size=16)
    answers = finish(Driver(executor))
    assert [len(answer) for answer in answers] == [ANSWER] * len(workload().requests)
    assert executor.describe().details["dtype"] == "bfloat16"


def test_importing_the_package_does_not_import_torch() -> None:
    program = "import sys, replay.executors.torch; assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_warm_up_looks_no_further_than_the_pool() -> None:
    executor = paged_executor("llama", blocks=2)
    assert executor.warm_up(rows=2, seconds=0.01) is executor.cost


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_padding_may_be_deeper_than_the_model_can_look(name: str) -> None:
    # As where a long prompt's short answer is complete and a short prompt's long answer goes on.
    driver = Driver(paged_executor(name))
    driver.step({1: None})
    driver.step({1: None}, Padding(rows=3, width=1, context=300))
    assert driver.answers()[1] == reference(name).answers[1][:2]


def test_a_decoder_leaves_its_model_no_weights() -> None:
    model: PreTrainedModel = dummy_model(
        AutoConfig.for_model("llama", **MODELS["llama"]), device=CPU, dtype=torch.float32, seed=0
    )
    Decoder(model, operations=TorchOperations(), positions=16)
    linears = [module for module in model.model.layers.modules() if isinstance(module, torch.nn.Linear)]
    assert len(linears) == 3 * 7
    assert not any(linear.weight.untyped_storage().nbytes() for linear in linears)


def test_steps_do_not_overlap_where_answers_may_end_early() -> None:
    engine = paged_executor("llama", computing=Computing(overlap=True, end_ids=frozenset({3})))
    assert engine.overlaps
    assert engine.describe().details["overlap"] is False


def test_many_blocks_go_to_host_memory_in_pieces_and_into_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_cache, "HOST_PIECE", 1000)  # bytes: 7 of these blocks
    cache = KVCache(
        layers=2, heads=1, head_dim=4, blocks=80, block_size=2, device=CPU, dtype=torch.float32, host_blocks=80
    )
    for pool in cache.pools:
        pool.copy_(torch.randn(pool.shape, generator=torch.Generator().manual_seed(0)))
    before = [pool[:, :80].clone() for pool in cache.pools]
    out = [(block, block * 7 % 80) for block in range(80)]
    cache.swap(out, [(host, 79 - block) for block, host in out])
    for pool, kept in zip(cache.pools, before, strict=True):
        assert torch.equal(pool[:, :80], kept.flip(1))

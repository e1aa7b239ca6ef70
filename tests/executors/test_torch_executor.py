"""What the executor keeps and says beside its tokens: state, warm-up, description."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from greedy import ANSWER, CPU, MODELS, Driver, paged_executor, reference, workload
from transformers import AutoConfig

from replay.executors.interface import Batch, Executor, Share
from replay.executors.torch.executor import TorchExecutor
from replay.executors.torch.models import dummy_model
from replay.executors.torch.native.library import load
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

"""The same greedy tokens as transformers' `generate`, alone, however the work was cut, packed, padded or repeated."""

from __future__ import annotations

from functools import cache

import pytest
from greedy import ANSWER, MARGIN, MODELS, PROMPTS, Driver, paged_executor, reference
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.executors.interface import Padding
from replay.executors.torch.executor import TorchExecutor

ROWS = range(len(PROMPTS))


@pytest.fixture(scope="module", params=list(MODELS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def executor(name: str) -> TorchExecutor:
    return paged_executor(name)


def test_the_reference_is_worth_comparing_with(name: str) -> None:
    expected = reference(name)
    assert expected.margin > MARGIN  # no tie that the order of a sum could turn
    assert all(len(answer) == ANSWER for answer in expected.answers)
    assert all(len(set(answer)) > ANSWER // 2 for answer in expected.answers)  # no endless repeat of a few tokens
    assert len({tuple(answer) for answer in expected.answers}) == len(PROMPTS)


def test_each_request_alone(name: str, executor: TorchExecutor) -> None:
    driver = Driver(executor)
    for row in ROWS:
        while row in driver.unfinished():
            driver.step({row: None})
    assert driver.answers() == reference(name).answers


def test_all_packed_together_in_scattered_blocks(name: str, executor: TorchExecutor) -> None:
    driver = Driver(executor, scatter=5)
    driver.spoil()
    while rows := driver.unfinished():
        driver.step(dict.fromkeys(rows))
    assert driver.steps == ANSWER
    assert driver.answers() == reference(name).answers


@pytest.mark.parametrize("chunk", [1, 3, 7, 16])
def test_chunks_of_prompts_between_decodes(name: str, executor: TorchExecutor, chunk: int) -> None:
    driver = Driver(executor, scatter=chunk)
    driver.spoil()
    for joining in ROWS:  # a request joins every other step, while those before it are at their prompts or answers
        for _ in range(2):
            driver.step({row: chunk for row in driver.unfinished() if row <= joining})
    while rows := driver.unfinished():
        driver.step(dict.fromkeys(rows, chunk))
    assert driver.answers() == reference(name).answers


def test_padded_rows_that_finish_at_different_times(name: str, executor: TorchExecutor) -> None:
    driver = Driver(executor, scatter=3)
    driver.spoil()
    rows = len(PROMPTS)
    driver.step(dict.fromkeys(ROWS), Padding(rows, width=max(PROMPTS), context=max(PROMPTS)))
    for step in range(1, ANSWER):
        left = [row for row in ROWS if step < ANSWER - 3 * row]  # each finishes three steps before the one above it
        driver.step(dict.fromkeys(left), Padding(rows, width=1, context=max(PROMPTS) + step))
    expected = reference(name).answers
    assert [len(answer) for answer in driver.answers()] == [ANSWER - 3 * row for row in ROWS]
    assert driver.answers() == [answer[: ANSWER - 3 * row] for row, answer in enumerate(expected)]


@pytest.mark.parametrize("chunk", [None, 5, 16, 40])
def test_recomputed_after_an_eviction(name: str, executor: TorchExecutor, chunk: int | None) -> None:
    driver = Driver(executor, scatter=7)
    for _ in range(10):
        driver.step(dict.fromkeys(ROWS))
    for row in (0, 3, 5):
        driver.evict(row)
    driver.spoil()
    while rows := driver.unfinished():
        driver.step(dict.fromkeys(rows, chunk))
    assert driver.answers() == reference(name).answers


def test_evicted_twice_and_in_the_middle_of_a_prompt(name: str, executor: TorchExecutor) -> None:
    driver = Driver(executor)
    driver.step({5: 20, 1: None})
    driver.evict(5)
    driver.step({4: None, 5: 50, 1: None})
    driver.evict(1)
    driver.step({5: None, 1: 3})
    driver.evict(5)
    while rows := driver.unfinished():
        driver.step(dict.fromkeys(rows))
    assert driver.answers() == reference(name).answers


@pytest.mark.parametrize("block_size", [1, 5, 32])
def test_blocks_of_other_sizes(name: str, block_size: int) -> None:
    blocks = 6 * 96 // block_size + 6
    driver = Driver(paged_executor(name, blocks=blocks, block_size=block_size), blocks=blocks, block_size=block_size)
    while rows := driver.unfinished():
        driver.step(dict.fromkeys(rows, 11))
    assert driver.answers() == reference(name).answers


@cache
def llama() -> TorchExecutor:
    return paged_executor("llama")


@settings(max_examples=30)
@given(data=st.data())
def test_any_interleaving(data: st.DataObject) -> None:
    driver = Driver(llama(), scatter=data.draw(st.integers(0, 9)))
    driver.spoil()
    chosen = st.dictionaries(st.sampled_from(ROWS), st.integers(1, 70), min_size=1)
    for _ in range(data.draw(st.integers(1, 30))):
        running = [request.row for request in driver.requests if request.computed]
        for row in data.draw(st.sets(st.sampled_from(running), max_size=2)) if running else ():
            if row in driver.unfinished():
                driver.evict(row)
        unfinished = driver.unfinished()
        parts = {row: tokens for row, tokens in data.draw(chosen).items() if row in unfinished}
        if parts:
            driver.step(
                parts, data.draw(st.none() | st.builds(driver.padding, st.just(parts), *[st.integers(0, 20)] * 3))
            )
    expected = reference("llama").answers
    assert driver.answers() == [answer[: len(got)] for got, answer in zip(driver.answers(), expected, strict=True)]
    while rows := driver.unfinished():
        driver.step(dict.fromkeys(rows))
    assert driver.answers() == expected

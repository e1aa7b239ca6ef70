"""Tokens drawn with the probabilities that they should have, and the same ones whoever is in the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from replay.executors.torch.sampling import CANDIDATES, sample, uniforms

DRAWS = 40_000
PROBABILITIES = torch.tensor([0.05, 0.3, 0.02, 0.4, 0.15, 0.08])  # by likelihood: 3, 1, 4, 5, 0, 2


def numbers(count: int, seed: int = 1) -> Tensor:
    return torch.from_numpy(uniforms(seed, np.arange(count), np.zeros(count, dtype=np.int64)))


def shares(**settings: Any) -> Tensor:
    """How often each token is drawn."""
    logits = PROBABILITIES.log().expand(DRAWS, -1)
    ids = sample(logits, numbers(DRAWS), **settings)
    return torch.bincount(ids, minlength=len(PROBABILITIES)) / DRAWS


@pytest.mark.parametrize(
    ("settings", "weights"),
    [
        ({}, [0.05, 0.3, 0.02, 0.4, 0.15, 0.08]),
        ({"top_k": 3}, [0, 0.3, 0, 0.4, 0.15, 0]),
        ({"top_p": 0.85 - 1e-4}, [0, 0.3, 0, 0.4, 0.15, 0]),  # 0.4 + 0.3 does not reach it, 0.85 does
        ({"top_p": 0.85 + 1e-4}, [0, 0.3, 0, 0.4, 0.15, 0.08]),
        # Of the three largest the shares are 0.4, 0.3 and 0.15 of 0.85: two of them reach 0.8.
        ({"top_k": 3, "top_p": 0.8}, [0, 0.3, 0, 0.4, 0, 0]),
        ({"temperature": 0.5}, [0.05**2, 0.3**2, 0.02**2, 0.4**2, 0.15**2, 0.08**2]),
        ({"temperature": 2.0, "top_k": 2}, [0, 0.3**0.5, 0, 0.4**0.5, 0, 0]),
    ],
)
def test_tokens_come_as_often_as_they_should(settings: dict[str, Any], weights: list[float]) -> None:
    expected = torch.tensor(weights) / sum(weights)
    found = shares(**settings)
    possible = expected > 0
    assert (found[~possible] == 0).all()
    chi_square = float(DRAWS * ((found - expected)[possible] ** 2 / expected[possible]).sum())
    assert chi_square < 25  # for 5 degrees of freedom or fewer, exceeded once in 7000 seeds; this one is fixed


def test_a_number_chooses_by_its_place_in_the_sum() -> None:
    # Of 0.4, 0.3, 0.15, ...: sums 0.4, 0.7, 0.85, ...
    logits = PROBABILITIES.log().expand(6, -1)
    ids = sample(logits, torch.tensor([0.0, 0.39, 0.41, 0.69, 0.71, 1 - 2**-24]))
    assert ids.tolist() == [3, 3, 1, 1, 4, 2]


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-30}])
def test_what_leaves_only_the_largest(settings: dict[str, Any]) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(50, 1000, generator=generator) * 1e3
    assert torch.equal(sample(logits, numbers(50), **settings), logits.argmax(-1))


def test_greedy_takes_the_lowest_id_among_equals() -> None:
    assert sample(torch.tensor([[0.0, 7.0, 7.0, 7.0]]), torch.tensor([0.9]), temperature=0.0).tolist() == [1]


def test_equal_logits_are_drawn_alike() -> None:
    found = torch.bincount(sample(torch.zeros(DRAWS, 8), numbers(DRAWS)), minlength=8) / DRAWS
    torch.testing.assert_close(found, torch.full((8,), 1 / 8), rtol=0, atol=0.01)


def test_only_so_many_candidates_are_considered() -> None:
    logits = torch.arange(1000.0).flip(0).expand(2000, -1) * 1e-6  # all but equal, the first ones a little larger
    for options in ({}, {"top_k": 900}):
        ids = sample(logits, numbers(2000), **options)
        assert len(ids.unique()) > CANDIDATES * 0.95
        assert int(ids.max()) == CANDIDATES - 1


def test_a_vocabulary_of_one_and_a_batch_of_none() -> None:
    assert sample(torch.zeros(3, 1), numbers(3)).tolist() == [0, 0, 0]
    assert sample(torch.zeros(0, 9), numbers(0), top_p=0.5).tolist() == []


@settings(deadline=None, max_examples=50)
@given(
    rows=st.integers(2, 12),
    vocabulary=st.integers(1, 700),
    temperature=st.sampled_from([0.0, 0.3, 1.0]),
    top_k=st.none() | st.integers(1, 400),
    top_p=st.sampled_from([0.1, 0.9, 1.0]),
    seed=st.integers(0, 99),
)
def test_neighbours_change_nothing(
    rows: int, vocabulary: int, temperature: float, top_k: int | None, top_p: float, seed: int
) -> None:
    logits = torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * 3
    drawn = numbers(rows, seed)
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    together = sample(logits, drawn, **options)
    alone = [sample(logits[i : i + 1], drawn[i : i + 1], **options) for i in range(rows)]
    assert torch.equal(torch.cat(alone), together)
    assert ((together >= 0) & (together < vocabulary)).all()


def test_numbers_follow_from_seed_row_and_position_alone() -> None:
    rows, positions = np.array([0, 5, 5, 2**40]), np.array([0, 7, 8, 3])
    whole = uniforms(3, rows, positions)
    for i in range(4):
        assert uniforms(3, rows[i : i + 1], positions[i : i + 1])[0] == whole[i]
    assert len(set(whole.tolist()) | set(uniforms(4, rows, positions).tolist())) == 8
    assert np.array_equal(uniforms(3 + 2**64, rows, positions), whole)  # a seed counts by its low 64 bits
    assert uniforms(-1, rows, positions).dtype == np.float32


def test_numbers_are_uniform_and_neighbouring_ones_have_nothing_to_do_with_each_other() -> None:
    rows, positions = (part.reshape(-1) for part in np.meshgrid(np.arange(300), np.arange(300)))
    square = uniforms(0, rows, positions).astype(np.float64).reshape(300, 300)
    assert square.min() >= 0
    assert square.max() < 1
    counts = np.histogram(square, bins=100, range=(0, 1))[0]
    assert ((counts - 900) ** 2 / 900).sum() < 160  # 99 degrees of freedom: exceeded once in 10,000 seeds
    for near, other in ((square[1:], square[:-1]), (square[:, 1:], square[:, :-1])):
        assert abs(np.corrcoef(near.reshape(-1), other.reshape(-1))[0, 1]) < 0.015  # 4.5 deviations

"""Prompts drawn from a seed, shared where the trace says so, and real where there is content."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.errors import TraceError
from replay.prompts import draw_prompts
from replay.request import Request, Workload

VOCABULARY = 1000


def request(row: int, tokens: int, hashes: tuple[int, ...] = (), session: str | None = None) -> Request:
    return Request(row, str(row), 0.0, tokens, 1, session=session, prefix_hashes=hashes)


def workload(*requests: Request, **settings: object) -> Workload:
    return Workload(list(requests), [1] * len(requests), **settings)  # type: ignore[arg-type]  # named by each test


def draw(load: Workload, seed: int = 0, **settings: object) -> list[list[int]]:
    return [ids.tolist() for ids in draw_prompts(load, VOCABULARY, seed, **settings)]  # type: ignore[arg-type]


def test_as_long_as_the_trace_says_in_32_bits() -> None:
    prompts = draw_prompts(workload(request(0, 1), request(1, 100)), VOCABULARY, 0)
    assert [len(ids) for ids in prompts] == [1, 100]
    assert {ids.dtype for ids in prompts} == {np.dtype(np.int32)}


def test_the_same_for_the_same_seed_and_another_for_another() -> None:
    load = workload(request(0, 50, (1, 2)), request(1, 50), hash_block=16)
    assert draw(load) == draw(load)
    for mine, other in zip(draw(load), draw(load, seed=1), strict=True):
        assert sum(a == b for a, b in zip(mine, other, strict=True)) < 5


def test_the_same_in_every_process() -> None:
    program = (
        "from replay.prompts import draw_prompts; from replay.request import *; "
        "r = Request(0, 'a', 0.0, 12, 1, session='s', prefix_hashes=(7, 8)); "
        "print(draw_prompts(Workload([r], [1], hash_block=4, hash_scope='session'), 1000, 3)[0].tolist())"
    )
    elsewhere = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    here = draw(workload(request(0, 12, (7, 8), "s"), hash_block=4, hash_scope="session"), seed=3)[0]
    assert elsewhere.strip() == str(here)


def test_every_id_is_drawn_and_no_special_one() -> None:
    ids = draw_prompts(workload(request(0, 2000)), 50, 0, special=(0, 7, 49))[0]
    assert set(ids.tolist()) == set(range(50)) - {0, 7, 49}
    counts = np.bincount(ids, minlength=50)[[i for i in range(50) if i not in (0, 7, 49)]]
    assert counts.min() > 15
    assert counts.max() < 80  # 2000 / 47 = 43 each, with a deviation of 6.5


def test_equal_hashes_give_equal_blocks_wherever_they_stand() -> None:
    # Blocks of 4: both begin with blocks 11 and 12; then one has block 13 and the other 14; then tails of their own.
    first, second = draw(workload(request(0, 14, (11, 12, 13)), request(1, 15, (11, 12, 14)), hash_block=4))
    assert first[:8] == second[:8]
    assert first[8:12] != second[8:12]
    assert first[12:14] != second[12:14]


def test_a_hash_that_reaches_beyond_the_prompt_is_cut() -> None:
    long, short = draw(workload(request(0, 8, (5, 6)), request(1, 6, (5, 6)), hash_block=4))
    assert long[:6] == short


def test_negative_and_large_hashes_are_hashes_too() -> None:
    ids = draw(workload(request(0, 8, (-1, 2**63)), request(1, 8, (2**64 - 1, -(2**63))), hash_block=4))
    assert ids[0] == ids[1]  # the same 64 bits


def test_within_a_session_only() -> None:
    requests = [request(i, 4, (5,), session) for i, session in enumerate(("a", "a", "b", None, None))]
    mine, same, other, nobody, nobody_else = draw(workload(*requests, hash_block=4, hash_scope="session"))
    assert mine == same
    assert len({tuple(ids) for ids in (mine, other, nobody, nobody_else)}) == 4


def test_real_ids_are_kept_and_cut_at_the_length_of_the_trace() -> None:
    load = workload(request(0, 3), request(1, 3), prompts={0: [9, 8, 7, 6], 1: [5, 4]})
    assert draw(load) == [[9, 8, 7], [5, 4]]


def test_text_is_tokenised_or_else_drawn_like_the_rest() -> None:
    with_text, without = (workload(request(0, 3), prompts=prompts) for prompts in ({0: "ab"}, {}))
    assert draw(with_text, tokenize=lambda text: [ord(letter) for letter in text]) == [[97, 98]]
    assert draw(with_text) == draw(without)


@pytest.mark.parametrize(
    ("content", "message"),
    [([3, 1000], "row 0: token id 1000 .* vocabulary of 1000"), ([-1], "token id -1"), ([], "row 0: .* no tokens")],
)
def test_content_that_cannot_be_replayed(content: list[int], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        draw(workload(request(0, 3), prompts={0: content}))


@given(
    lengths=st.lists(st.integers(1, 70), min_size=2, max_size=6),
    shared=st.integers(0, 4),
    block=st.integers(1, 20),
    seed=st.integers(0, 2**63),
)
def test_prompts_share_exactly_the_prefix_that_their_hashes_do(
    lengths: list[int], shared: int, block: int, seed: int
) -> None:
    common = tuple(range(1, shared + 1))
    requests = [request(i, length, (*common, 100 + i)) for i, length in enumerate(lengths)]
    prompts = draw(workload(*requests, hash_block=block), seed=seed)
    for mine in prompts:
        for other in prompts:
            known = min(len(mine), len(other), shared * block)
            assert mine[:known] == other[:known]

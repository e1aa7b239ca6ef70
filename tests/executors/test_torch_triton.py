"""Our Triton kernels against plain PyTorch: on a CUDA device where there is one, else in Triton's interpreter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from greedy import ANSWER, DEVICE, MODELS, PROMPTS, Driver, paged_executor, reference
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from replay.executors.interface import Padding
from replay.executors.torch.attention import TorchPaged
from replay.executors.torch.computing import Computing
from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.layout import Row, Rows, lay_out
from replay.executors.torch.operations import TorchOperations
from replay.executors.torch.triton.words import Sizes, sizes_of, write_words

pytest.importorskip("triton", reason="Triton is not installed")

from replay.executors.torch.triton.attention import Numbers, TritonPaged, tokens_per_tile
from replay.executors.torch.triton.operations import TritonOperations, largest
from replay.executors.torch.triton.steps import TritonSteps

BLOCKS = 40
CUDA = DEVICE.type == "cuda"


def pool(kv_heads: int, head_dim: int, block_size: int) -> KVCache:
    cache = KVCache(
        layers=1,
        heads=kv_heads,
        head_dim=head_dim,
        blocks=BLOCKS,
        block_size=block_size,
        device=DEVICE,
        dtype=torch.float32,
    )
    cache.pools[0].copy_(torch.randn(cache.pools[0].shape, generator=torch.Generator().manual_seed(1)))
    return cache


def spread(packed: torch.Tensor, place: np.ndarray, real: np.ndarray, tokens: int) -> torch.Tensor:
    """The real ones of packed tokens at their places among `tokens`, whose rest is 1."""
    filled = torch.ones((tokens, *packed.shape[1:]), device=packed.device)
    filled[place] = packed[real]
    return filled


@settings(max_examples=30 if CUDA else 12, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    sizes=st.lists(st.tuples(st.integers(0, 30), st.sampled_from([1, 1, 1, 2, 5, 19])), min_size=1, max_size=6),
    shape=st.sampled_from([(1, 1, 16), (4, 2, 64), (9, 3, 64), (6, 1, 48), (2, 2, 20), (8, 1, 128)]),
    block_size=st.sampled_from([1, 3, 16]),
    units=st.sampled_from([1, 8, 132]),
    padded=st.booleans(),
    more=st.sampled_from([0, 0, 3]),
    seed=st.integers(0, 2**16),
)
def test_attention(
    sizes: list[tuple[int, int]],
    shape: tuple[int, int, int],
    block_size: int,
    units: int,
    padded: bool,
    more: int,
    seed: int,
) -> None:
    heads, kv_heads, head_dim = shape
    blocks = np.random.default_rng(seed).permutation(BLOCKS).tolist()
    rows = []
    for start, tokens in sizes:
        held = -(-(start + tokens) // block_size)
        if held > len(blocks):
            break
        rows.append(Row(np.zeros(tokens, dtype=np.int32), start, [blocks.pop() for _ in range(held)], samples=True))
    if not rows:
        return
    width, context = max(len(row.ids) for row in rows), max(row.end for row in rows) + 2
    padding = Padding(len(rows) + 1, width, max(width, context)) if padded else None
    layout = lay_out(Rows.of(rows), padding, block_size, BLOCKS)
    generator = torch.Generator().manual_seed(seed)
    packed = torch.randn(len(layout.ids), heads + 2 * kv_heads, head_dim, generator=generator).to(DEVICE)
    cos, sin = (torch.randn(len(packed), head_dim // 2, generator=generator).to(DEVICE) for _ in range(2))
    plain, ours = pool(*shape[1:], block_size), pool(*shape[1:], block_size)
    expected = TorchPaged(layout, plain, torch.float32).rotate_and_attend(0, packed.clone(), cos, sin, 0.3)
    late = np.full(sum(len(row.ids) for row in rows), -1)
    per_tile = tokens_per_tile(heads, kv_heads)
    exact = sizes_of(layout, per_tile)
    counts = Sizes(exact.singles + more, exact.rows + more, exact.tokens + more, exact.tiles + more)
    words = write_words(
        layout,
        late,
        np.zeros(len(layout.sampled), dtype=np.float32),
        counts,
        tokens_per_tile=per_tile,
        spare_block=BLOCKS,
    )
    numbers = Numbers.of(torch.from_numpy(words).to(DEVICE), counts)
    real = np.flatnonzero(layout.source >= 0)
    place = real + more * (real >= exact.singles)  # where it lies among the filling
    packed, cos, sin = (spread(each, place, real, counts.all_tokens) for each in (packed, cos, sin))
    paged = TritonPaged(ours, numbers, counts, heads, units)
    found = paged.rotate_and_attend(0, packed.clone(), cos, sin, 0.3)
    torch.testing.assert_close(found[place], expected[real], rtol=1e-4, atol=1e-5)
    sampled = layout.sampled + more * (layout.sampled >= exact.singles)
    assert numbers.sampled[: len(sampled)].tolist() == sampled.tolist()
    torch.testing.assert_close(ours.pools[0][:, :BLOCKS], plain.pools[0][:, :BLOCKS], rtol=1e-5, atol=1e-6)
    query, key, value = packed[:, :heads], packed[:, heads:-kv_heads], packed[:, -kv_heads:]
    where = torch.zeros(len(layout.ids), dtype=torch.int64)
    where[real] = torch.from_numpy(place)
    given = (each[where.to(DEVICE)] for each in (query, key, value))
    expected = TorchPaged(layout, plain, torch.float32).attend(0, *given, 0.3)
    found = TritonPaged(ours, numbers, counts, heads, units).attend(0, query, key, value, 0.3)
    torch.testing.assert_close(found[place], expected[real], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("width", [64, 576, 1500])
def test_the_small_operations(width: int) -> None:
    generator = torch.Generator().manual_seed(width)
    x, residual, weight, both = (
        torch.randn(*size, generator=generator).to(DEVICE)
        for size in ((3, width), (3, width), (width,), (3, 2 * width))
    )
    ours, plain = TritonOperations(), TorchOperations()
    summed, expected = residual.clone(), residual.clone()
    torch.testing.assert_close(
        ours.add_rms_norm(x, summed, weight, 1e-5), plain.add_rms_norm(x, expected, weight, 1e-5)
    )
    torch.testing.assert_close(summed, expected)
    heads = both.view(3, 2, width)[:, :1]  # not contiguous, as the queries among the packed heads are
    torch.testing.assert_close(ours.rms_norm(heads, weight, 1e-5), plain.rms_norm(heads, weight, 1e-5))
    torch.testing.assert_close(ours.silu_mul(both), plain.silu_mul(both))


def test_the_largest_is_found_in_parts_and_the_lowest_of_equals() -> None:
    logits = torch.randn(3, 9000, generator=torch.Generator().manual_seed(0))
    logits[1, [17, 4100, 8999]] = 9.0
    logits[2, [4095, 4096]] = 9.0
    assert largest(logits.to(DEVICE)).tolist() == [int(logits[0].argmax()), 17, 4095]


@pytest.mark.parametrize("name", MODELS if CUDA else ["qwen3", "gpt2"])
@pytest.mark.parametrize("graphs", [False, True] if CUDA else [False])
@pytest.mark.parametrize("overlap", [False, True] if CUDA else [False])
def test_greedy_tokens(name: str, graphs: bool, overlap: bool) -> None:
    engine = paged_executor(name, computing=Computing(attention="triton", graphs=graphs, overlap=overlap))
    if graphs:
        engine.warm_up(rows=4, tokens=32, context=64, slots=4, seconds=0.01)
        captured = engine._steps.prepared
        fused = ["1+0", "2+0", "4+0", "8+16", "8+32"]
        assert captured == (fused if name != "gpt2" else [])  # steps of more rows go without
    driver = Driver(engine, scatter=3)
    driver.spoil()
    answers = ANSWER if CUDA else 3
    rows = range(len(PROMPTS) if CUDA else 4)  # an interpreter is slow
    driver.step(dict.fromkeys(rows[:3]), Padding(4, width=max(PROMPTS[:3]), context=max(PROMPTS[:3])))
    driver.step(dict.fromkeys(rows[:3]), Padding(4, width=1, context=max(PROMPTS[:3]) + 1))
    while left := [row for row in rows if driver.requests[row].generated < answers]:
        driver.step(dict.fromkeys(left, 16))
    expected = [answer[: len(ours)] for ours, answer in zip(driver.answers(), reference(name).answers, strict=True)]
    assert driver.answers() == expected
    assert all(len(driver.answers()[row]) >= answers for row in rows)


def test_more_rows_than_a_step_was_expected_to_have() -> None:
    # In place of a model: each token is followed by itself.
    def forward(ids: torch.Tensor, positions: torch.Tensor, sampled: torch.Tensor, paged: object) -> torch.Tensor:
        return ids[sampled][:, None].float()

    steps = TritonSteps(
        forward, pool(1, 16, 16), lambda logits, draws: logits[:, 0].long(), heads=1, positions=64, graphs=False
    )
    rows = [Row(np.array([i], dtype=np.int32), 0, [0], samples=True) for i in range(520)]
    rows += [Row(np.ones(2, dtype=np.int32), 0, [1], samples=False) for _ in range(20)]
    layout = lay_out(Rows.of(rows), None, 16, BLOCKS)
    found = steps.run(layout, np.full(len(layout.ids), -1), np.zeros(520, dtype=np.float32))
    assert found.tolist() == list(range(520))

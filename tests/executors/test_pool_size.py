"""How many KV blocks fit, by hand: for devices that are not here, and for the engine that is built here."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from replay.errors import EngineError
from replay.executors.model_shape import ModelShape
from replay.executors.pool_size import BESIDE, GIB, PoolSize, blocks_of, size_pool, workspace_bytes
from replay.executors.torch import build_torch_executor
from replay.executors.torch.memory import available_bytes, check_host_fits, check_kv_fits, device_memory, kv_shape
from replay.executors.torch.shapes import SHAPES, shape_config
from replay.experiment.settings import Engine
from replay.planning import plan_pool

LLAMA = ModelShape.of(SHAPES["llama-3.1-8b"])
CPU = torch.device("cpu")


def test_the_articles_example() -> None:
    """80 GB, 14 GB of weights, 0.5 MB a token, 512 tokens a request: about 264, less what the spare block takes."""
    pool = PoolSize(memory=80 * GIB, utilization=1, weights=14 * GIB, workspace=0, token_bytes=2**19, block_size=16)
    assert pool.left // (512 * pool.token_bytes) == 264
    assert (pool.blocks, pool.tokens, pool.batch(512)) == (8447, 135_152, 263)


def test_llama_8b_on_80_gib_by_hand() -> None:
    found = plan_pool(Engine(model="llama-3.1-8b", memory_utilization=0.9), (2048, 256), memory=80 * GIB)
    pool = found.pool
    assert (found.dtype, found.kv_dtype, found.device) == ("bfloat16", "bfloat16", None)
    assert pool.allowed == 77_309_411_328  # 72 GiB
    assert pool.weights == 8_030_261_248 * 2
    # One layer of 2,048 tokens: 3 x 4,096 and 3 x 14,336 numbers of 2 bytes; 256 x 128,256 logits of 2 and of 4.
    assert pool.workspace == 2048 * (12_288 + 43_008) * 2 + 256 * 128_256 * 6 + 268_435_456 == 691_929_088
    assert pool.token_bytes == 2 * 32 * 8 * 128 * 2 == 131_072
    assert pool.left == 77_309_411_328 - 16_060_522_496 - 691_929_088 == 60_556_959_744
    assert pool.blocks == 60_556_959_744 // (16 * 131_072) - 1 == 28_874
    assert [pool.batch(tokens) for tokens in (1, 16, 17, 4096, 461_984, 461_985)] == [28_874, 28_874, 14_437, 112, 1, 0]
    assert pool.arithmetic() == ("0.9 x 80.00 GiB - 14.96 GiB of weights - 0.64 GiB of workspace = 56.40 GiB")


def test_narrower_keys_make_room_for_more() -> None:
    wide = plan_pool(Engine(model="llama-3.1-8b", dtype="float32"), (1, 1), memory=80 * GIB)
    mixed = plan_pool(Engine(model="llama-3.1-8b", dtype="float32", kv_dtype="bfloat16"), (1, 1), memory=80 * GIB)
    assert wide.pool.token_bytes == 2 * mixed.pool.token_bytes == 262_144
    assert mixed.pool.blocks == wide.pool.left // (16 * 131_072) - 1


def test_what_others_hold_and_swap_space_count() -> None:
    alone = size_pool(
        LLAMA,
        memory=80 * GIB,
        taken=0,
        utilization=0.5,
        weights=GIB,
        itemsize=2,
        kv_itemsize=2,
        block_size=16,
        step=(1, 1),
    )
    beside = size_pool(
        LLAMA, memory=80 * GIB, taken=3 * GIB, utilization=0.5, weights=GIB, itemsize=2, kv_itemsize=2, block_size=16,
        step=(1, 1), swap=2 * GIB,
    )  # fmt: skip
    assert alone.left - beside.left == 5 * GIB
    assert "- 3.00 GiB in use already - 1.00 GiB of weights" in beside.arithmetic()
    assert "- 2.00 GiB of swap space = " in beside.arithmetic()


def test_a_pool_that_cannot_be_is_refused_with_the_arithmetic() -> None:
    pool = PoolSize(
        memory=8 * GIB, utilization=0.9, weights=15 * GIB, workspace=GIB // 2, token_bytes=131_072, block_size=16
    )
    assert (pool.blocks, pool.batch(1)) == (0, 0)
    with pytest.raises(EngineError) as fault:
        pool.require()
    assert str(fault.value) == (
        "engine.memory_utilization = 0.9 leaves no room for a KV pool: 0.9 x 8.00 GiB - 15.00 GiB of weights - "
        "0.50 GiB of workspace = -8.30 GiB, and 2 blocks of 2,097,152 bytes are the least; take a larger share, a "
        "smaller model or a narrower dtype"
    )


@given(
    memory=st.integers(1, 2**40),
    utilization=st.floats(0.01, 1),
    weights=st.integers(0, 2**38),
    token_bytes=st.integers(1, 2**20),
    block_size=st.integers(1, 64),
    tokens=st.integers(1, 2**17),
)
def test_the_pool_never_passes_its_share(
    memory: int, utilization: float, weights: int, token_bytes: int, block_size: int, tokens: int
) -> None:
    pool = PoolSize(
        memory=memory,
        utilization=utilization,
        weights=weights,
        workspace=BESIDE,
        token_bytes=token_bytes,
        block_size=block_size,
    )
    used = weights + BESIDE + (pool.blocks + 1) * pool.block_bytes
    assert not pool.blocks or used <= memory * utilization
    assert pool.blocks == 0 or used + pool.block_bytes > pool.allowed
    assert pool.batch(tokens) * blocks_of(tokens, block_size) <= pool.blocks
    assert (pool.batch(tokens) + 1) * blocks_of(tokens, block_size) > pool.blocks


def test_workspace_grows_with_tokens_and_samples() -> None:
    least = workspace_bytes(LLAMA, tokens=1, samples=1, itemsize=2)
    assert workspace_bytes(LLAMA, tokens=2, samples=1, itemsize=2) - least == (3 * 4096 + 3 * 14_336) * 2
    assert workspace_bytes(LLAMA, tokens=1, samples=2, itemsize=2) - least == 128_256 * (2 + 4)


def test_the_engine_has_the_blocks_that_the_plan_names() -> None:
    """As nearly as others leave the machine's memory alone meanwhile."""
    before, taken = device_memory(CPU)
    assert taken == 0
    share, step = 600 * 2**20 / before, (256, 8)  # weights and workspace take about half of it
    executor = build_torch_executor(model="tiny", device="cpu", dtype="float32", memory_utilization=share, step=step)
    engine = Engine(model="tiny", device="cpu", dtype="float32", memory_utilization=share)
    planned = plan_pool(engine, step, memory=before).pool.blocks
    assert planned > 4000
    assert 0.5 * planned < executor.kv_blocks < 1.5 * planned
    assert executor.kv_blocks == executor.describe().details["kv_blocks"]


def test_a_share_that_is_too_small_builds_nothing() -> None:
    with pytest.raises(EngineError, match=r"leaves no room for a KV pool: 0.0001 x .* of weights"):
        build_torch_executor(model="tiny", device="cpu", dtype="float32", memory_utilization=0.0001)


def test_blocks_that_do_not_fit_are_refused_with_the_arithmetic() -> None:
    available = available_bytes(CPU)
    assert available is not None
    blocks = 2 * available // (16 * 3072)
    with pytest.raises(EngineError, match=rf"{blocks} \+ 1 blocks x 16 tokens x 3072 bytes .* at most \d+ blocks fit"):
        check_kv_fits(kv_shape(shape_config("tiny")), blocks=blocks, block_size=16, device=CPU, dtype=torch.float32)


@pytest.mark.parametrize("name", SHAPES)
def test_both_ways_of_counting_a_token_agree(name: str) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        assert kv_shape(shape_config(name)).token_bytes(dtype) == ModelShape.of(SHAPES[name]).kv_token_bytes(
            dtype.itemsize
        )


def test_swap_space_that_does_not_fit_is_refused_with_the_arithmetic() -> None:
    available = available_bytes(CPU)
    assert available is not None
    shape = kv_shape(shape_config("tiny"))  # 16 tokens x 3072 bytes a block
    half = (available // (16 * 3072)) // 2
    more = 3 * half // 2
    for host_blocks, blocks, device in ((4 * half, 8, "cpu"), (4 * half, 8, "cuda"), (more, more, "cpu")):
        with pytest.raises(EngineError, match=r"engine.swap_gb asks for .* GiB of host memory, which has .* GiB left"):
            check_host_fits(
                shape,
                host_blocks=host_blocks,
                blocks=blocks,
                block_size=16,
                device=torch.device(device),
                dtype=torch.float32,
            )
    check_host_fits(shape, host_blocks=8, blocks=8, block_size=16, device=CPU, dtype=torch.float32)

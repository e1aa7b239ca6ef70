"""The compiled attention and operations against float64, and what an installation without a compiler is told."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from replay.executors.interface import Padding
from replay.executors.torch.attention import TorchPaged
from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.layout import Layout, Row, Rows, lay_out
from replay.executors.torch.native import library as native_module
from replay.executors.torch.native.attention import NativeOperations, NativePaged, largest, native_for
from replay.executors.torch.native.library import Native, load
from replay.executors.torch.operations import TorchOperations, rotate

CPU = torch.device("cpu")
NATIVE, REASON = load()
compiled = pytest.mark.skipif(NATIVE is None, reason=f"there is no compiled code here: {REASON}")


def the_native() -> Native:
    assert NATIVE is not None
    return NATIVE


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class Case:
    """Rows (context, tokens of it that are computed now) over a shuffled pool of random keys and values."""

    def __init__(
        self,
        rows: list[tuple[int, int]],
        *,
        heads: int = 6,
        kv_heads: int = 2,
        head_dim: int = 64,
        block_size: int = 16,
        dtype: torch.dtype = torch.float32,
        padding: Padding | None = None,
        seed: int = 0,
        loud: float = 1.0,
    ) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.heads, self.kv_heads, self.head_dim, self.loud = heads, kv_heads, head_dim, loud
        sizes = [-(-context // block_size) for context, _ in rows]
        free = iter(np.random.default_rng(seed).permutation(sum(sizes)).tolist())
        self.cache = KVCache(
            layers=1,
            heads=kv_heads,
            head_dim=head_dim,
            blocks=sum(sizes),
            block_size=block_size,
            device=CPU,
            dtype=dtype,
        )
        self.cache.pools[0].copy_(self.drawn(*self.cache.pools[0].shape))
        self.rows = [
            Row(np.zeros(now, dtype=np.int32), context - now, [next(free) for _ in range(size)], samples=True)
            for (context, now), size in zip(rows, sizes, strict=True)
        ]
        self.padding = padding
        self.layout = self.laid_out(self.rows)
        tokens = len(self.layout.ids)
        self.query, self.key, self.value = (
            self.drawn(tokens, count, head_dim) for count in (heads, kv_heads, kv_heads)
        )

    def drawn(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator) * self.loud

    def laid_out(self, rows: list[Row]) -> Layout:
        return lay_out(Rows.of(rows), self.padding, self.cache.block_size, self.cache.spare_block)

    def paged(self, layout: Layout | None = None) -> NativePaged:
        return NativePaged(layout or self.layout, self.cache, the_native(), self.heads)

    def attended(self) -> Tensor:
        return self.paged().attend(0, self.query, self.key, self.value, self.head_dim**-0.5)

    def expected(self) -> Tensor:
        """softmax(q k) v in float64, over what the pool holds once the step's own keys and values are there."""
        real = np.flatnonzero(self.layout.source >= 0)
        pools = self.cache.pools[0].clone()
        for pool, new in zip(pools, (self.key, self.value), strict=True):
            for token in real:
                pool[self.layout.blocks[token], :, self.layout.offsets[token]] = new[token].to(pool.dtype)
        owners = np.repeat(np.arange(len(self.layout.widths)), self.layout.widths)
        result = torch.full(self.query.shape, float("nan"), dtype=torch.float64)
        for token in real:
            context = int(self.layout.positions[token]) + 1
            table = self.layout.tables[owners[token]][: -(-context // self.cache.block_size)]
            keys, values = (torch.cat([pool[block] for block in table], dim=1)[:, :context].double() for pool in pools)
            keys, values = (part.repeat_interleave(self.heads // self.kv_heads, dim=0) for part in (keys, values))
            scores = torch.einsum("hd,htd->ht", self.query[token].double(), keys) * self.head_dim**-0.5
            result[token] = torch.einsum("ht,htd->hd", scores.softmax(-1), values)
        return result


ROWS = st.lists(
    st.tuples(st.integers(1, 300), st.integers(1, 40)).map(lambda row: (max(row), min(row))), min_size=1, max_size=5
)


@compiled
@settings(deadline=None, max_examples=60)
@given(
    rows=ROWS,
    kv_heads=st.integers(1, 3),
    group=st.sampled_from([1, 2, 3, 4, 7, 20]),
    head_dim=st.sampled_from([1, 8, 20, 33, 64, 80, 96, 128]),
    block_size=st.sampled_from([1, 5, 16, 48, 256]),
    half=st.booleans(),
    threads=st.sampled_from([1, 2]),
    seed=st.integers(0, 99),
)
def test_the_attention_is_that_of_float64(
    rows: list[tuple[int, int]],
    kv_heads: int,
    group: int,
    head_dim: int,
    block_size: int,
    half: bool,
    threads: int,
    seed: int,
) -> None:
    case = Case(
        rows,
        heads=kv_heads * group,
        kv_heads=kv_heads,
        head_dim=head_dim,
        block_size=block_size,
        dtype=torch.float16 if half and the_native().half else torch.float32,
        seed=seed,
    )
    expected = case.expected()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        attended = case.attended()
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(attended.double(), expected, rtol=1e-5, atol=1e-5)


@compiled
def test_keys_and_values_are_kept_where_the_layout_says_and_nowhere_else() -> None:
    case = Case([(40, 1), (17, 17), (1, 1)])
    before = case.cache.pools[0].clone()
    case.attended()
    for pool, new in zip(before, (case.key, case.value), strict=True):
        pool[torch.from_numpy(case.layout.blocks), :, torch.from_numpy(case.layout.offsets)] = new
    assert torch.equal(case.cache.pools[0], before)


@compiled
@pytest.mark.parametrize("loud", [1e2, 1e4, 1e8])
def test_large_scores_give_no_nan(loud: float) -> None:
    case = Case([(200, 3), (7, 7), (150, 1)], loud=loud)
    attended = case.attended()
    assert torch.isfinite(attended).all()
    torch.testing.assert_close(attended.double(), case.expected(), rtol=1e-4, atol=1e-4 * loud)


@compiled
def test_equal_scores_weigh_alike() -> None:
    # Keys of zero: each of the 33 values weighs 1 / 33, the new one included.
    case = Case([(33, 1)], heads=1, kv_heads=1)
    case.cache.pools[0][0].zero_()
    case.key.zero_()
    table = case.layout.tables[0]
    values = torch.cat([case.cache.pools[0][1, block] for block in table], dim=1)[0, :32]
    torch.testing.assert_close(case.attended()[0, 0], (values.sum(0) + case.value[0, 0]) / 33)


@compiled
@pytest.mark.usefixtures("two_threads")
def test_a_token_has_the_same_bits_in_every_batch_in_every_chunk_and_with_any_threads() -> None:
    case = Case([(700, 1), (1, 1), (300, 1), (150, 150), (90, 9)])
    together = case.attended()
    for i, row in enumerate(case.rows):
        place = int(np.flatnonzero(np.repeat(np.arange(5), case.layout.widths) == list_index(case, i))[0])
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for first in range(0, len(row.ids), 7):  # chunks of 7 tokens, alone
                count = min(7, len(row.ids) - first)
                layout = case.laid_out([Row(row.ids[:count], row.start + first, row.blocks, samples=True)])
                own = slice(place + first, place + first + count)
                parts = (part[own] for part in (case.query, case.key, case.value))
                assert torch.equal(case.paged(layout).attend(0, *parts, case.head_dim**-0.5), together[own])


def list_index(case: Case, handed_in: int) -> int:
    """The row of the layout that the row handed in at this place became."""
    row = case.rows[handed_in]
    return int(np.flatnonzero((case.layout.tables[:, 0] == row.blocks[0]) & (case.layout.ends == row.end))[0])


@compiled
@pytest.mark.parametrize("padding", [Padding(4, 1, 150), Padding(3, 1, 80)])
def test_padded_decodes(padding: Padding) -> None:
    case = Case([(80, 1), (3, 1), (17, 1)], padding=padding)
    real = torch.from_numpy(np.flatnonzero(case.layout.source >= 0))
    expected = case.expected()[real]
    torch.testing.assert_close(case.attended()[real].double(), expected, rtol=1e-5, atol=1e-5)


@compiled
def test_padded_chunks_agree_with_plain_pytorch() -> None:
    case = Case([(40, 9), (3, 3), (17, 1)], padding=Padding(5, 12, 200))
    real = torch.from_numpy(np.flatnonzero(case.layout.source >= 0))
    native = case.attended()
    plain = TorchPaged(case.layout, case.cache, torch.float32).attend(0, case.query, case.key, case.value, 0.125)
    torch.testing.assert_close(native[real], plain[real], rtol=1e-5, atol=1e-5)
    assert torch.isfinite(native).all()


@compiled
@pytest.mark.parametrize("head_dim", [2, 20, 64, 96])
@pytest.mark.parametrize("rows", [[(600, 1)], [(40, 40), (130, 1), (9, 3)]])
def test_rotation_is_that_of_pytorch(head_dim: int, rows: list[tuple[int, int]]) -> None:
    case = Case(rows, head_dim=head_dim)
    angles = case.drawn(len(case.query), head_dim // 2)
    heads = torch.cat([case.query, case.key, case.value], dim=1)
    attended = case.paged().rotate_and_attend(0, heads, angles.cos(), angles.sin(), head_dim**-0.5)
    case.query, case.key = (rotate(part, angles.cos(), angles.sin()) for part in (case.query, case.key))
    torch.testing.assert_close(attended.double(), case.expected(), rtol=1e-5, atol=1e-5)


@compiled
def test_heads_that_do_not_lie_together_are_put_together() -> None:
    case = Case([(40, 5), (9, 1)])
    expected = case.attended()
    case.query, case.key, case.value = (
        part.transpose(0, 1).contiguous().transpose(0, 1) for part in (case.query, case.key, case.value)
    )
    assert torch.equal(case.attended(), expected)


@compiled
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("shape", [(1, 7), (3, 64), (33, 576), (200, 1000), (4, 3, 80)])
def test_operations_are_those_of_pytorch(shape: tuple[int, ...]) -> None:
    ours, plain = NativeOperations(the_native()), TorchOperations()
    generator = torch.Generator().manual_seed(0)
    x, residual = (torch.randn(shape, generator=generator) for _ in range(2))
    weight = torch.randn(shape[-1], generator=generator)
    torch.testing.assert_close(ours.rms_norm(x, weight, 1e-5), plain.rms_norm(x, weight, 1e-5))
    strided = torch.randn(*shape[:-1], 2 * shape[-1], generator=generator)[..., : shape[-1]]
    torch.testing.assert_close(ours.rms_norm(strided, weight, 1e-5), plain.rms_norm(strided, weight, 1e-5))
    mine, other = residual.clone(), residual.clone()
    torch.testing.assert_close(ours.add_rms_norm(x, mine, weight, 1e-5), plain.add_rms_norm(x, other, weight, 1e-5))
    assert torch.equal(mine, other)
    if len(shape) == 2:
        gate_up = torch.randn(shape[0], 2 * shape[1], generator=generator) * 30
        gate_up[0, 0], gate_up[-1, 1] = 1e4, -1e4
        torch.testing.assert_close(ours.silu_mul(gate_up), plain.silu_mul(gate_up))


@compiled
@pytest.mark.parametrize("vocabulary", [1, 7, 16, 500, 4099])
def test_the_largest_is_the_first_among_equals(vocabulary: int) -> None:
    logits = torch.randint(-5, 5, (40, vocabulary), generator=torch.Generator().manual_seed(0)).float()
    logits[3] = -float("inf")
    assert torch.equal(largest(the_native(), logits), torch.from_numpy(logits.numpy().argmax(1)))


@compiled
def test_it_brings_no_second_openmp() -> None:
    program = (
        "import re, torch; from replay.executors.torch.native.library import load; assert load()[0] is not None; "
        "maps = open('/proc/self/maps').read(); print(len(set(re.findall(r'/\\S*omp[^/]*[.]so\\S*', maps))))"
    )
    if sys.platform == "linux":
        shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        assert int(shown) <= 1


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A cache folder with nothing in it, and nothing loaded yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    load.cache_clear()
    yield tmp_path
    load.cache_clear()


def test_without_a_compiler(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fresh))
    assert load() == (None, "no C++ compiler (c++, g++, clang++)")


def test_a_compiler_that_refuses(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = fresh / "c++"
    compiler.write_text("#!/bin/sh\necho 'attention.cpp:1: error: what is this?' >&2\nexit 1\n")
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{fresh}:/bin:/usr/bin")
    assert load() == (None, "c++ refuses it: attention.cpp:1: error: what is this?")
    assert list((fresh / "cache" / "replay").iterdir()) == []  # nothing is left behind


def test_a_cache_that_cannot_be_written(fresh: Path) -> None:
    (fresh / "cache").write_text("a file where the folder should be")
    native, reason = load()
    assert native is None
    assert re.search(r"it could not be built in .*/cache/replay: |no C\+\+ compiler", reason)


@compiled
def test_two_processes_build_at_once_and_a_third_finds_it(fresh: Path) -> None:
    program = "from replay.executors.torch.native.library import load; print(load()[1])"
    both = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0].strip() for process in both] == [REASON, REASON]
    built = list((fresh / "cache" / "replay").iterdir())
    assert [path.suffix for path in built] == [".so"]
    when = built[0].stat().st_mtime_ns
    assert load()[0] is not None
    assert built[0].stat().st_mtime_ns == when


def test_what_it_is_not_for() -> None:
    assert native_for(torch.float32, torch.float32, torch.device("cuda"))[1].startswith("it is for a CPU")
    assert native_for(torch.bfloat16, torch.float32, CPU)[1] == "it computes in float32, and the model is in bfloat16"
    native, reason = native_for(torch.float32, torch.bfloat16, CPU)
    assert native is None
    assert NATIVE is None or reason == "it has no keys and values in bfloat16 on this processor"


def test_its_sources_are_there_for_every_installation() -> None:
    assert all((native_module.FOLDER / name).is_file() for name in native_module.SOURCES)
    assert shutil.which("c++") is None or NATIVE is not None, REASON

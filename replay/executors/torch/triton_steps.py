"""Steps on a CUDA device: one copy of integers, our Triton kernels, and decodes as captured CUDA graphs.

A captured graph replays the kernels of a whole step without Python; it is captured for a number of rows, and a step of
fewer is filled up with rows that write to the spare block. It does not know requests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from replay.executors.torch.forward import Forward
from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.layout import Integers, Layout
from replay.executors.torch.steps import Sample
from replay.executors.torch.triton_attention import Numbers, Sizes, TritonPaged, Words, tokens_per_tile, words_of

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512)


@dataclass(slots=True)
class Captured:
    """The graph of a decode step of `len(sampled)` rows: it reads `words` and writes `sampled`."""

    graph: torch.cuda.CUDAGraph
    words: Tensor
    sampled: Tensor


class TritonSteps:
    """`Steps` by kernels of our own. `positions` is the length of the longest sequence; `graphs` captures decodes."""

    name = "triton"

    def __init__(
        self, forward: Forward, cache: KVCache, sample: Sample, *, heads: int, positions: int, graphs: bool
    ) -> None:
        self._forward = forward
        self._cache = cache
        self._sample = sample
        self._heads = heads
        self._longest_table = -(-positions // cache.block_size)
        self._graphs = graphs
        self._captured: dict[int, Captured] = {}
        self._pool: object = None
        cuda = cache.device.type == "cuda"
        self._units = torch.cuda.get_device_properties(cache.device).multi_processor_count if cuda else 1
        self._last = torch.zeros(SIZES[-1], dtype=torch.int64, device=cache.device)

    @property
    def captured(self) -> list[int]:
        """The numbers of rows for which there is a graph."""
        return sorted(self._captured)

    @torch.inference_mode()
    def run(self, layout: Layout, late: Integers) -> Tensor:
        rows = len(layout.widths)
        if len(layout.sampled) > len(self._last):
            grown = torch.zeros(2 * len(layout.sampled), dtype=torch.int64, device=self._cache.device)
            grown[: len(self._last)] = self._last
            self._last = grown
            self._captured.clear()  # they read and write the one before
        size = next((size for size in self._captured if rows <= size), None)
        if layout.singles == rows and size is not None and len(layout.sampled) == rows:
            captured = self._captured[size]
            words = _decode_words(layout, late, size, self._cache.spare_block)
            captured.words[: len(words)].copy_(_staged(words, self._cache.device), non_blocking=True)
            captured.graph.replay()
        else:
            words, sizes = words_of(layout, late, tokens_per_tile=tokens_per_tile(self._heads, self._cache.heads))
            self._compute(_staged(words, self._cache.device).to(self._cache.device, non_blocking=True), sizes)
        return self._last[: len(layout.sampled)]

    @torch.inference_mode()
    def warm_up(self, rows: int) -> None:
        """Capture the graphs of decode steps of up to `rows` rows."""
        if not self._graphs:
            return
        largest = next((size for size in SIZES if size >= rows), SIZES[-1])
        for size in reversed(SIZES):  # the largest first: the others use its memory again
            if size <= largest and size not in self._captured:
                self._captured[size] = self._capture(size)
        self._captured = dict(sorted(self._captured.items()))

    def _capture(self, size: int) -> Captured:
        sizes = Sizes(tokens=size, samples=size, singles=size, tiles=0, rows=size)
        dummy = np.zeros(10 * size + 1 + size * self._longest_table, dtype=np.int32)
        words = torch.from_numpy(dummy).to(self._cache.device)
        fill = Numbers.of(words, sizes)
        fill.late.fill_(-1)
        fill.blocks.fill_(self._cache.spare_block)
        fill.sampled.copy_(torch.arange(size))
        for index in (fill.tile_first, fill.tile_row):
            index.copy_(torch.arange(size))
        for one in (fill.tile_tokens, fill.tile_context, fill.stride):
            one.fill_(1)
        fill.tables.fill_(self._cache.spare_block)
        stream = torch.cuda.Stream(self._cache.device)  # type: ignore[no-untyped-call]  # it has no annotations
        stream.wait_stream(torch.cuda.current_stream(self._cache.device))
        with torch.cuda.stream(stream):
            self._compute(words, sizes)  # kernels are compiled and libraries wake up outside the capture
        torch.cuda.current_stream(self._cache.device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):  # type: ignore[arg-type]  # a handle of no public type
            sampled = self._compute(words, sizes)
        self._pool = self._pool or graph.pool()
        return Captured(graph, words, sampled)

    def _compute(self, words: Tensor, sizes: Sizes) -> Tensor:
        numbers = Numbers.of(words, sizes)
        waiting = numbers.late >= 0
        ids = torch.where(waiting, self._last[numbers.late.clamp(min=0)].to(torch.int32), numbers.ids)
        paged = TritonPaged(self._cache, numbers, sizes, self._heads, self._units)
        sampled = self._last[: sizes.samples]
        if sizes.samples:
            sampled.copy_(self._sample(self._forward(ids, numbers.positions, numbers.sampled, paged)))
        else:
            self._forward(ids, numbers.positions, numbers.sampled, paged)
        return sampled


def _staged(words: Words, device: torch.device) -> Tensor:
    """Numbers in memory from which a CUDA device copies without holding up the host."""
    staged = torch.from_numpy(words)
    return staged.pin_memory() if device.type == "cuda" else staged


def _decode_words(layout: Layout, late: Integers, size: int, spare_block: int) -> Words:
    """A layout of single tokens as one array, filled up to `size` rows that look at one token of the spare block."""
    rows, stride = layout.tables.shape
    words = np.zeros(10 * size + 1 + size * stride, dtype=np.int32)
    ids, late_, positions, blocks, offsets, sampled, first, tokens, row, context = words[: 10 * size].reshape(10, size)
    tables = words[10 * size + 1 :].reshape(size, stride)
    ids[:rows] = layout.ids
    late_[:] = -1
    late_[:rows] = np.where(layout.source >= 0, late[layout.source], -1)
    positions[:rows] = layout.positions
    blocks[:] = spare_block
    blocks[:rows] = layout.blocks
    offsets[:rows] = layout.offsets
    sampled[:] = np.arange(size)
    sampled[:rows] = layout.sampled
    first[:] = row[:] = np.arange(size)
    tokens[:] = 1
    context[:] = 1
    context[:rows] = layout.contexts
    words[10 * size] = stride
    tables[:] = spare_block
    tables[:rows] = layout.tables
    return words

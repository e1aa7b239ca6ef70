"""Paged attention through our Triton kernels: what a CUDA device uses.

A step's numbers reach the device as one array of 32-bit integers. It does not know requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

import torch
import triton
from torch import Tensor

from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.triton import kernels
from replay.executors.torch.triton.words import Segments, Sizes

LEAST_QUERIES = 16  # rows of a matrix product, at least
CHUNK_QUERIES = 64  # rows of a chunk's tile: tokens x query heads of a KV head
TILE_BYTES = 16_384  # of keys at once: 128 positions of 64 numbers in bfloat16
WARPS, STAGES = 4, 3  # measured on an H200, with the bytes at once: other choices were up to a sixth slower
MOST_SPLITS = 16
HEADS_AT_ONCE = 8  # of one token, that one program rotates and writes


@dataclass(slots=True)
class Numbers:
    """A step's integers on the device: `Segments` as tensors."""

    ids: Tensor
    late: Tensor
    positions: Tensor
    blocks: Tensor
    offsets: Tensor
    sampled: Tensor
    draws: Tensor
    tile_first: Tensor
    tile_tokens: Tensor
    tile_row: Tensor
    tile_context: Tensor
    stride: Tensor
    tables: Tensor

    @classmethod
    def of(cls, words: Tensor, sizes: Sizes) -> Numbers:
        """The views of an array that lies on the device."""
        segments: Any = Segments.of(words, sizes)  # type: ignore[arg-type]  # a tensor is sliced as an array is
        return cls(*(getattr(segments, field.name) for field in fields(Segments)))


def tokens_per_tile(heads: int, kv_heads: int) -> int:
    """Tokens of a prompt's chunk that one program attends for."""
    return max(1, CHUNK_QUERIES // (heads // kv_heads))


@dataclass(slots=True)
class TritonPaged:
    """The attention of one step by our kernels. `heads` are the query heads, `units` the device's multiprocessors."""

    cache: KVCache
    numbers: Numbers
    sizes: Sizes
    heads: int
    units: int
    layers: int = field(default=0, init=False)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Write keys and values [tokens, kv_heads, head_dim] to the cache, and attend: [tokens, heads, head_dim]."""
        self.layers += 1
        cache, numbers = self.cache, self.numbers
        keys, values = cache.pools[layer]
        kernels.write_kv[(len(key), cache.heads)](
            key.contiguous(),
            value.contiguous(),
            numbers.blocks,
            numbers.offsets,
            keys,
            values,
            cache.heads,
            cache.head_dim,
            triton.next_power_of_2(cache.head_dim),
            cache.block_size,
        )
        return self._attend(layer, query.contiguous(), scale)

    def rotate_and_attend(self, layer: int, heads: Tensor, cos: Tensor, sin: Tensor, scale: float) -> Tensor:
        """As `attend`, of queries, keys and values side by side [tokens, heads + 2 * kv_heads, head_dim]; the queries
        are rotated in place."""
        self.layers += 1
        cache, numbers = self.cache, self.numbers
        keys, values = cache.pools[layer]
        kernels.rotate_and_write[(len(heads), triton.cdiv(heads.shape[1], HEADS_AT_ONCE))](
            heads,
            cos,
            sin,
            numbers.blocks,
            numbers.offsets,
            keys,
            values,
            self.heads,
            cache.heads,
            cache.head_dim,
            triton.next_power_of_2(cache.head_dim // 2),
            cache.block_size,
            HEADS_AT_ONCE,
        )
        return self._attend(layer, heads, scale)

    def _attend(self, layer: int, query: Tensor, scale: float) -> Tensor:
        out = torch.empty((len(query), self.heads, self.cache.head_dim), device=query.device, dtype=query.dtype)
        singles, tiles = self.sizes.singles, self.sizes.tiles
        if singles:
            self._launch(layer, query, out, scale, slice(0, singles), 1, self._splits(singles))
        if tiles:
            per_tile = tokens_per_tile(self.heads, self.cache.heads)
            self._launch(layer, query, out, scale, slice(singles, singles + tiles), per_tile, 1)
        return out

    def _splits(self, singles: int) -> int:
        """Programs that share one row's context, so that a few rows fill the device too; a power of 2."""
        wanted = 2 * self.units // (singles * self.cache.heads)
        return min(MOST_SPLITS, 1 << max(wanted, 1).bit_length() - 1)

    def _launch(
        self, layer: int, query: Tensor, out: Tensor, scale: float, part: slice, per_tile: int, splits: int
    ) -> None:
        cache, numbers = self.cache, self.numbers
        keys, values = cache.pools[layer]
        tiles = part.stop - part.start
        shape = (splits, tiles, self.heads) if splits > 1 else (0,)
        partial = torch.empty((*shape, cache.head_dim), device=out.device, dtype=torch.float32)
        stats = torch.empty((*shape, 2), device=out.device, dtype=torch.float32)
        padded_dim = max(16, triton.next_power_of_2(cache.head_dim))
        queries = max(LEAST_QUERIES, triton.next_power_of_2(per_tile * (self.heads // cache.heads)))
        kernels.attend_tiles[(tiles, cache.heads, splits)](
            query,
            keys,
            values,
            out,
            partial,
            stats,
            numbers.tile_first[part],
            numbers.tile_tokens[part],
            numbers.tile_row[part],
            numbers.tile_context[part],
            numbers.positions,
            numbers.tables,
            numbers.stride,
            query.stride(0),
            tiles,
            scale * math.log2(math.e),
            self.heads,
            cache.heads,
            cache.head_dim,
            padded_dim,
            cache.block_size,
            queries,
            min(128, max(16, TILE_BYTES // (padded_dim * query.element_size()))),
            splits,
            "ieee" if query.dtype == torch.float32 else "tf32",
            num_warps=WARPS,
            num_stages=STAGES,
        )
        if splits > 1:
            kernels.join_splits[(tiles, self.heads)](
                partial,
                stats,
                out,
                numbers.tile_first[part],
                tiles,
                self.heads,
                cache.head_dim,
                padded_dim,
                splits,
            )

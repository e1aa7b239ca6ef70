"""The keys and values of the KV pool's blocks, on the device, and those of requests swapped out, in host memory.

One tensor for each layer, allocated once. It knows numbers of blocks, and no requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

TOGETHER = 32  # blocks that are swapped at once: they lie on the device twice more meanwhile
HOST_PIECE = 2**30  # bytes: PyTorch rounds what is pinned up to a power of 2, so larger space is pinned in pieces


class KVCache:
    """Keys and values of `blocks` blocks of `block_size` tokens, and of one more, the spare, for padding.

    A layer's tensor is [2, blocks + 1, heads, block_size, head_dim], keys first: a block's tokens of one head lie
    together, so that a gather copies long rows. `host_blocks` further blocks lie in host memory, pinned on CUDA.
    """

    def __init__(
        self,
        *,
        layers: int,
        heads: int,
        head_dim: int,
        blocks: int,
        block_size: int,
        device: torch.device,
        dtype: torch.dtype,
        host_blocks: int = 0,
    ) -> None:
        self.layers, self.heads, self.head_dim = layers, heads, head_dim
        self.blocks, self.block_size = blocks, block_size
        self.device, self.dtype = device, dtype
        shape = (2, blocks + 1, heads, block_size, head_dim)
        # Written to at once: memory that is only promised would be found, or not be there, in the middle of a replay.
        self.pools = [torch.empty(shape, device=device, dtype=dtype).zero_() for _ in range(layers)]
        self._pinned = device.type == "cuda"
        block = (layers, 2, *shape[2:])
        self._per_piece = max(HOST_PIECE // (prod(block) * dtype.itemsize), 1)
        sizes = [min(self._per_piece, host_blocks - first) for first in range(0, host_blocks, self._per_piece)]
        self._host = [torch.empty((size, *block), dtype=dtype, pin_memory=self._pinned).zero_() for size in sizes]
        self._scratch = [torch.empty(0, device=device, dtype=dtype) for _ in range(2)]

    @property
    def spare_block(self) -> int:
        """The block that padding writes to."""
        return self.blocks

    def write(self, layer: int, keys: Tensor, values: Tensor, slots: Tensor) -> None:
        """Keep keys and values [tokens, heads, head_dim] at `slots` [tokens * heads], rows of head_dim in the pool."""
        for pool, new in zip(self.pools[layer], (keys, values), strict=True):
            pool.view(-1, self.head_dim).index_copy_(0, slots, new.reshape(-1, self.head_dim).to(self.dtype))

    def gather(self, layer: int, index: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """Keys and values [rows, heads, tokens, head_dim] of `index` [rows * heads * blocks], block * heads + head.

        They are views of a buffer that the next gather overwrites.
        """
        shape = (len(index), self.block_size * self.head_dim)
        size = shape[0] * shape[1]
        if self._scratch[0].numel() < size:
            self._scratch = [torch.empty(size, device=self.device, dtype=self.dtype) for _ in range(2)]
        split = (rows, self.heads, -1, self.head_dim)
        keys, values = (buffer[:size].view(shape) for buffer in self._scratch)
        pool = self.pools[layer].view(2, -1, shape[1])
        torch.index_select(pool[0], 0, index, out=keys)
        torch.index_select(pool[1], 0, index, out=values)
        return keys.view(split), values.view(split)

    def swap(self, out: Sequence[tuple[int, int]], back: Sequence[tuple[int, int]]) -> None:
        """Copy blocks to host memory, pairs of (block, host block), then others back, pairs of (host block, block)."""
        for first in range(0, len(out), TOGETHER):
            self._swap_out(out[first : first + TOGETHER])
        for first in range(0, len(back), TOGETHER):
            self._swap_back(back[first : first + TOGETHER])

    def _swap_out(self, pairs: Sequence[tuple[int, int]]) -> None:
        source = self._index([block for block, _ in pairs])
        copied = torch.stack([pool[:, source].transpose(0, 1) for pool in self.pools], dim=1)
        for block, (_, host) in zip(copied, pairs, strict=True):  # all its layers at once; the host waits for none
            self._host_block(host).copy_(block, non_blocking=True)

    def _swap_back(self, pairs: Sequence[tuple[int, int]]) -> None:
        target = self._index([block for _, block in pairs])
        copied = torch.stack([self._host_block(host).to(self.device, non_blocking=True) for host, _ in pairs])
        for layer, pool in enumerate(self.pools):
            pool[:, target] = copied[:, layer].transpose(0, 1)

    def _host_block(self, number: int) -> Tensor:
        """[layers, 2, heads, block_size, head_dim] in host memory."""
        piece, place = divmod(number, self._per_piece)
        return self._host[piece][place]

    def _index(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, pin_memory=self._pinned).to(self.device, non_blocking=True)

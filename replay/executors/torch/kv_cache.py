"""The keys and values of the KV pool's blocks, on the device, and those of requests swapped out, in host memory.

One tensor for each layer, allocated once. It knows numbers of blocks, and no requests.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


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
        pinned = device.type == "cuda"
        self._host = torch.empty((host_blocks, layers, 2, *shape[2:]), dtype=dtype, pin_memory=pinned).zero_()
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
        if out:
            source = torch.tensor([block for block, _ in out], device=self.device)
            # One copy over the bus for all layers of all blocks; to pageable memory where they are sorted in.
            copied = torch.stack([pool[:, source].transpose(0, 1) for pool in self.pools], dim=1)
            self._host[torch.tensor([host for _, host in out])] = copied.cpu()
        if back:
            target = torch.tensor([block for _, block in back], device=self.device)
            copied = self._host[torch.tensor([host for host, _ in back])].to(self.device)
            for layer, pool in enumerate(self.pools):
                pool[:, target] = copied[:, layer].transpose(0, 1)

"""Attention over a paged KV cache, in plain PyTorch, as an attention implementation that transformers' models call.

The cache holds keys and values by block and head; a step's metadata is put on the device once and reaches every layer
as a keyword argument of the model's forward. It does not know requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface

from replay.errors import EngineError
from replay.executors.torch.layout import Layout

IMPLEMENTATION = "replay_paged"  # its name among transformers' attention implementations


class KVCache:
    """Keys and values of `blocks` blocks of `block_size` tokens, and of one more, the spare, for padding.

    One tensor each for the keys and the values of each layer, [(blocks + 1) * heads, block_size * head_dim]: a block's
    tokens of one head lie together, so that a gather copies long rows.
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
    ) -> None:
        self.layers, self.heads, self.head_dim = layers, heads, head_dim
        self.blocks, self.block_size = blocks, block_size
        self.device, self.dtype = device, dtype
        shape = ((blocks + 1) * heads, block_size * head_dim)
        # Written to at once: memory that is only promised would be found, or not be there, in the middle of a replay.
        self._keys = [torch.empty(shape, device=device, dtype=dtype).zero_() for _ in range(layers)]
        self._values = [torch.empty(shape, device=device, dtype=dtype).zero_() for _ in range(layers)]
        self._scratch = [torch.empty(0, device=device, dtype=dtype) for _ in range(2)]

    @property
    def spare_block(self) -> int:
        """The block that padding writes to."""
        return self.blocks

    def write(self, layer: int, keys: Tensor, values: Tensor, slots: Tensor) -> None:
        """Keep keys and values [tokens, heads, head_dim] at `slots` [tokens * heads]."""
        for pool, new in ((self._keys[layer], keys), (self._values[layer], values)):
            pool.view(-1, self.head_dim).index_copy_(0, slots, new.reshape(-1, self.head_dim))

    def gather(self, layer: int, index: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """Keys and values [rows, heads, tokens, head_dim] of the blocks in `index` [rows * heads * blocks].

        They are views of a buffer that the next gather overwrites.
        """
        shape = (len(index), self.block_size * self.head_dim)
        size = shape[0] * shape[1]
        if self._scratch[0].numel() < size:
            self._scratch = [torch.empty(size, device=self.device, dtype=self.dtype) for _ in range(2)]
        keys, values = (buffer[:size].view(shape) for buffer in self._scratch)
        torch.index_select(self._keys[layer], 0, index, out=keys)
        torch.index_select(self._values[layer], 0, index, out=values)
        split = (rows, self.heads, -1, self.head_dim)
        return keys.view(split), values.view(split)


@dataclass(slots=True)
class DeviceRectangle:
    """A rectangle of the layout with its index [rows * heads * blocks] and mask (0 or -inf) on the device."""

    first: int
    rows: int
    width: int
    context: int
    index: Tensor | None
    mask: Tensor | None  # [rows, 1, width, context], added to the scores


@dataclass(slots=True)
class Paged:
    """What attention needs of a step, the same for all layers: the cache, where to write, what to read."""

    cache: KVCache
    slots: Tensor  # [tokens * heads]: rows of head_dim in the cache
    rectangles: list[DeviceRectangle]
    layers: int = 0  # how many layers have attended so far

    @classmethod
    def of(cls, layout: Layout, cache: KVCache) -> Paged:
        """Put a layout on the cache's device."""
        heads = np.arange(cache.heads)
        slots = (layout.blocks[:, None] * cache.heads + heads) * cache.block_size + layout.offsets[:, None]
        rectangles = []
        for part in layout.rectangles:
            index = mask = None
            if part.tables is not None:
                rows = part.tables[:, None, :] * cache.heads + heads[None, :, None]
                index = torch.from_numpy(rows.reshape(-1)).to(cache.device, non_blocking=True)
            if part.allowed is not None:
                blocked = torch.from_numpy(~part.allowed).to(cache.device, non_blocking=True)
                mask = torch.zeros(blocked.shape, device=cache.device, dtype=cache.dtype)
                mask = mask.masked_fill_(blocked, float("-inf")).unsqueeze(1)
            rectangles.append(DeviceRectangle(part.first, part.rows, part.width, part.context, index, mask))
        return cls(cache, torch.from_numpy(slots.reshape(-1)).to(cache.device, non_blocking=True), rectangles)


def paged_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,  # transformers hands it over; ours comes with `paged`
    *,
    scaling: float | None = None,
    paged: Paged | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attention of the packed tokens of a step, written to and read from the cache.

    `query` [1, heads, tokens, head_dim], `key` and `value` [1, kv_heads, tokens, head_dim]; the answer is
    [1, tokens, heads, head_dim]. Raises EngineError where the model wants more than softmax(q k) v.
    """
    name = type(module).__name__
    if paged is None:
        raise EngineError(f"{name} does not hand its keyword arguments to its attention, so it cannot be paged")
    wanted = [option for option in ("softcap", "s_aux") if options.get(option) is not None]
    if wanted:
        raise EngineError(f"{name} wants attention with {wanted[0]}, which the paged attention does not compute")
    if key.shape[1] != paged.cache.heads or key.shape[3] != paged.cache.head_dim:
        raise EngineError(
            f"{name} has keys of {key.shape[1]} heads of {key.shape[3]} numbers where its configuration promises "
            f"{paged.cache.heads} of {paged.cache.head_dim}, so they do not fit the KV pool"
        )
    layer = module.layer_idx
    assert isinstance(layer, int)
    keys, values, queries = key[0].transpose(0, 1), value[0].transpose(0, 1), query[0].transpose(0, 1)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    paged.cache.write(layer, keys, values, paged.slots)
    paged.layers += 1
    attended = [_attend(part, layer, queries, keys, values, scale, paged.cache) for part in paged.rectangles]
    output = attended[0] if len(attended) == 1 else torch.cat(attended)
    return output.unsqueeze(0), None


def _attend(
    part: DeviceRectangle, layer: int, queries: Tensor, keys: Tensor, values: Tensor, scale: float, cache: KVCache
) -> Tensor:
    """The attention of one rectangle: [rows * width, heads, head_dim]."""
    own = slice(part.first, part.first + part.rows * part.width)
    shape = (part.rows, part.width, -1, cache.head_dim)
    query = queries[own].reshape(shape).transpose(1, 2)
    if part.index is None:
        key, value = keys[own].reshape(shape).transpose(1, 2), values[own].reshape(shape).transpose(1, 2)
    else:
        key, value = (kept[:, :, : part.context] for kept in cache.gather(layer, part.index, part.rows))
    if part.width == 1:
        return _attend_single(query, key, value, part.mask, scale)
    output = functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=part.mask,
        is_causal=part.mask is None,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return output.transpose(1, 2).reshape(-1, query.shape[1], cache.head_dim)


def _attend_single(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """One query a row: the query heads that share a KV head are the rows of one matrix product."""
    rows, heads, _, head_dim = query.shape
    kv_heads = key.shape[1]
    grouped = query.reshape(rows, kv_heads, heads // kv_heads, head_dim)
    scores = torch.matmul(grouped * scale, key.transpose(2, 3))
    if mask is not None:
        scores += mask
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    return torch.matmul(weights, value).reshape(rows, heads, head_dim)


# Known to transformers from here on. As there is no mask function of that name, it builds no mask.
AttentionInterface.register(IMPLEMENTATION, paged_attention)

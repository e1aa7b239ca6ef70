"""Attention over the paged KV cache, as an attention implementation that transformers' models call.

What it needs of a step is put on the device once and reaches every layer as a keyword argument of the model's forward.
How it is computed is the backend's: plain PyTorch here, on any device. It does not know requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface

from replay.errors import EngineError
from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.layout import Layout
from replay.executors.torch.operations import rotate
from replay.executors.torch.rectangles import rectangles

IMPLEMENTATION = "replay_paged"  # its name among transformers' attention implementations


class Paged(Protocol):
    """The attention of one step: the same for all layers, but for their number."""

    cache: KVCache
    layers: int  # how many layers have attended so far

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Write keys and values [tokens, kv_heads, head_dim] to the cache, and attend: [tokens, heads, head_dim]."""

    def rotate_and_attend(self, layer: int, heads: Tensor, cos: Tensor, sin: Tensor, scale: float) -> Tensor:
        """As `attend`, of queries, keys and values side by side [tokens, heads + 2 * kv_heads, head_dim], which it may
        write to; queries and keys are rotated by `cos` and `sin` [tokens, head_dim / 2] first."""


@dataclass(slots=True)
class DeviceRectangle:
    """A rectangle of the layout with its index [rows * heads * blocks] and mask (0 or -inf) on the device."""

    first: int
    rows: int
    width: int
    context: int
    index: Tensor | None
    mask: Tensor | None  # [rows, 1, width, context], added to the scores


class TorchPaged:
    """Paged attention in plain PyTorch: rectangles of rows are gathered, then one matrix product for each."""

    def __init__(self, layout: Layout, cache: KVCache, dtype: torch.dtype, *, singles: bool = True) -> None:
        """Put a layout on the cache's device; `dtype` is that of the queries. Without `singles`, the rows of one token
        are left to somebody else."""
        self.cache = cache
        self.layers = 0
        heads = np.arange(cache.heads)
        slots = (layout.blocks[:, None] * cache.heads + heads) * cache.block_size + layout.offsets[:, None]
        self._slots = torch.from_numpy(slots.reshape(-1)).to(cache.device, non_blocking=True)
        self._rectangles = []
        for part in rectangles(layout, cache.block_size, singles=singles):
            index = mask = None
            if part.tables is not None:
                rows = part.tables[:, None, :] * cache.heads + heads[None, :, None]
                index = torch.from_numpy(rows.reshape(-1)).to(cache.device, non_blocking=True)
            if part.allowed is not None:
                blocked = torch.from_numpy(~part.allowed).to(cache.device, non_blocking=True)
                mask = torch.zeros(blocked.shape, device=cache.device, dtype=dtype)
                mask = mask.masked_fill_(blocked, float("-inf")).unsqueeze(1)
            self._rectangles.append(DeviceRectangle(part.first, part.rows, part.width, part.context, index, mask))

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        self.write(layer, key, value)
        attended = self.attend_rectangles(layer, query, key, value, scale)
        return attended[0] if len(attended) == 1 else torch.cat(attended)

    def rotate_and_attend(self, layer: int, heads: Tensor, cos: Tensor, sin: Tensor, scale: float) -> Tensor:
        kv_heads = self.cache.heads
        rotated = rotate(heads[:, :-kv_heads], cos, sin)
        query, key = rotated[:, :-kv_heads], rotated[:, -kv_heads:]
        return self.attend(layer, query, key, heads[:, -kv_heads:], scale)

    def write(self, layer: int, key: Tensor, value: Tensor) -> None:
        """Keep the step's keys and values in the cache."""
        self.layers += 1
        self.cache.write(layer, key, value, self._slots)

    def attend_rectangles(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> list[Tensor]:
        """The attention of each rectangle, [rows * width, heads, head_dim]."""
        return [_attend(part, layer, query, key, value, scale, self.cache) for part in self._rectangles]


def _attend(
    part: DeviceRectangle, layer: int, queries: Tensor, keys: Tensor, values: Tensor, scale: float, cache: KVCache
) -> Tensor:
    own = slice(part.first, part.first + part.rows * part.width)
    shape = (part.rows, part.width, -1, cache.head_dim)
    query = queries[own].reshape(shape).transpose(1, 2)
    if part.index is None:
        key, value = keys[own].reshape(shape).transpose(1, 2), values[own].reshape(shape).transpose(1, 2)
    else:
        key, value = (kept[:, :, : part.context].to(query.dtype) for kept in cache.gather(layer, part.index, part.rows))
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
    for what, part in (("keys", key), ("values", value)):
        if part.shape[1] != paged.cache.heads or part.shape[3] != paged.cache.head_dim:
            raise EngineError(
                f"{name} has {what} of {part.shape[1]} heads of {part.shape[3]} numbers where its configuration "
                f"promises {paged.cache.heads} of {paged.cache.head_dim}, so they do not fit the KV pool"
            )
    layer = module.layer_idx
    assert isinstance(layer, int)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    queries, keys, values = query[0].transpose(0, 1), key[0].transpose(0, 1), value[0].transpose(0, 1)
    return paged.attend(layer, queries, keys, values, scale).unsqueeze(0), None


# Known to transformers from here on. As there is no mask function of that name, it builds no mask.
AttentionInterface.register(IMPLEMENTATION, paged_attention)

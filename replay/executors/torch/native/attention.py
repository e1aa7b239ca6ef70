"""Paged attention and a decoder's small operations by the compiled code, for float32 on a CPU.

All tokens of a step go to one call a layer, decodes and chunks of prompts alike. It knows layouts and the cache, and no
requests.
"""

from __future__ import annotations

import ctypes

import numpy as np
import torch
from torch import Tensor

from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.layout import Layout
from replay.executors.torch.native.library import Native, load


def native_for(dtype: torch.dtype, kv_dtype: torch.dtype, device: torch.device) -> tuple[Native | None, str]:
    """The compiled code for a model and a pool of these number types; None where there is none, and why."""
    if device.type != "cpu":
        return None, f"it is for a CPU, and the model is on {device}"
    if dtype != torch.float32:
        return None, f"it computes in float32, and the model is in {_name(dtype)}"
    native, reason = load()
    if native is not None and kv_dtype != torch.float32 and not (native.half and kv_dtype == torch.float16):
        return None, f"it has no keys and values in {_name(kv_dtype)} on this processor"
    return native, reason


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class Step(ctypes.Structure):
    """`Step` of attention.cpp."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("tokens", "heads", "kv_heads", "head_dim", "block_size", "table_width")),
        *((name, ctypes.c_int32) for name in ("threads", "half", "tiles")),
        ("keys", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("tables", "owners", "contexts", "spans", "blocks", "offsets", "first")),
    )


class NativePaged:
    """`Paged` by the compiled code. A token's result does not depend on the step's other tokens, nor on threads."""

    def __init__(self, layout: Layout, cache: KVCache, native: Native, heads: int) -> None:
        self.cache = cache
        self.layers = 0
        self._native, self._heads, self._tokens = native, heads, len(layout.ids)
        owners = np.repeat(np.arange(len(layout.widths)), layout.widths)
        contexts = layout.positions + 1
        # Padding is there to be measured: a padded row computes its whole width and depth, and weighs its own part.
        spans = layout.contexts[owners] if layout.padded else contexts
        arrays = (layout.tables, owners, contexts, spans, layout.blocks, layout.offsets, np.zeros(self._tokens + 1))
        self._arrays = [np.ascontiguousarray(part, dtype=np.int32) for part in arrays]  # as long as there are pointers
        self._step = Step(
            tokens=self._tokens,
            heads=heads,
            kv_heads=cache.heads,
            head_dim=cache.head_dim,
            block_size=cache.block_size,
            table_width=layout.tables.shape[1],
            threads=torch.get_num_threads() if native.threaded else 1,
            half=cache.dtype == torch.float16,
        )
        for name, part in zip(
            ("tables", "owners", "contexts", "spans", "blocks", "offsets", "first"), self._arrays, strict=True
        ):
            setattr(self._step, name, part.ctypes.data)
        self.address = ctypes.addressof(self._step)
        native.prepare(self.address)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        parts = _adjacent(query), _adjacent(key), _adjacent(value)
        addresses = tuple(number for part in parts for number in (part.data_ptr(), part.stride(0)))
        return self._call(layer, addresses, (None, None), scale)

    def rotate_and_attend(self, layer: int, heads: Tensor, cos: Tensor, sin: Tensor, scale: float) -> Tensor:
        assert all(numbers.is_contiguous() for numbers in (heads, cos, sin))
        query, across, dim = heads.data_ptr(), heads.stride(0), 4 * self.cache.head_dim  # bytes
        key = query + self._heads * dim
        value = key + self.cache.heads * dim
        return self._call(layer, (query, across, key, across, value, across), (cos.data_ptr(), sin.data_ptr()), scale)

    def _call(self, layer: int, addresses: tuple[int, ...], rotation: tuple[int | None, ...], scale: float) -> Tensor:
        """`addresses` of queries, keys and values, each with how many numbers its tokens lie apart."""
        self.layers += 1
        pool = self.cache.pools[layer]
        keys = pool.data_ptr()
        values = keys + pool.nbytes // 2
        output = torch.empty((self._tokens, self._heads, self.cache.head_dim))
        self._native.attend(self.address, *addresses, *rotation, scale, keys, values, output.data_ptr())
        return output


def _adjacent(numbers: Tensor) -> Tensor:
    """[tokens, heads, head_dim] with a token's heads one after the other, as the compiled code wants them."""
    _, head, within = numbers.stride()
    return numbers if within == 1 and head == numbers.shape[2] else numbers.contiguous()


class NativeOperations:
    """`Operations` by the compiled code."""

    def __init__(self, native: Native) -> None:
        self._native = native

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        return self._norm(x.contiguous(), None, weight, eps)

    def add_rms_norm(self, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
        assert residual.is_contiguous()
        return self._norm(x.contiguous(), residual.data_ptr(), weight, eps)

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        rows, both = gate_up.shape
        result = torch.empty((rows, both // 2))
        self._native.silu_mul(
            gate_up.contiguous().data_ptr(), rows, both // 2, torch.get_num_threads(), result.data_ptr()
        )
        return result

    def _norm(self, x: Tensor, residual: int | None, weight: Tensor, eps: float) -> Tensor:
        result, width = torch.empty_like(x), x.shape[-1]
        threads = torch.get_num_threads()
        self._native.rms_norm(
            x.data_ptr(), residual, weight.data_ptr(), eps, x.numel() // width, width, threads, result.data_ptr()
        )
        return result


def largest(native: Native, logits: Tensor) -> Tensor:
    """The ids [n] of the largest of `logits` [n, vocabulary], the lowest among equals."""
    logits = logits.contiguous()
    rows, vocabulary = logits.shape
    ids = torch.empty(rows, dtype=torch.int64)
    native.largest(logits.data_ptr(), rows, vocabulary, torch.get_num_threads(), ids.data_ptr())
    return ids

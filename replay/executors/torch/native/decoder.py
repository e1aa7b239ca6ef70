"""A decoder whose layers are computed by one call of the compiled code, so that Python costs nothing beside them.

It takes over the packed weights of a `Decoder`, and gives the same logits to rounding. It knows no requests.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from replay.executors.torch.attention import Paged
from replay.executors.torch.decoder import MATRICES, Decoder
from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.linears import NativeLinear
from replay.executors.torch.native.attention import NativeOperations, NativePaged
from replay.executors.torch.native.library import Native

_NORMS = ("norm", "feed_norm", "query_norm", "key_norm")
_SIZES = ("count", "hidden", "heads", "kv_heads", "head_dim", "mlp")


class _Matrix(ctypes.Structure):
    """`Matrix` of decoder.cpp."""

    _fields_ = (("packed", ctypes.c_void_p), ("bias", ctypes.c_void_p))


class _Layer(ctypes.Structure):
    """`Layer` of decoder.cpp."""

    _fields_ = (
        *((name, _Matrix) for name in MATRICES),
        *((name, ctypes.c_void_p) for name in _NORMS),
        *((name, ctypes.c_void_p) for name in ("keys", "values")),
    )


class _Decoder(ctypes.Structure):
    """`Decoder` of decoder.cpp."""

    _fields_ = (
        ("layers", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in _SIZES),
        *((name, ctypes.c_float) for name in ("eps", "scale")),
        *((name, ctypes.c_int32) for name in ("half", "threads")),
    )


class NativeDecoder:
    """`Forward` by the compiled code, for a `decoder` of nothing but `NativeLinear`, and steps of `NativePaged`."""

    def __init__(self, decoder: Decoder, cache: KVCache, native: Native) -> None:
        self._decoder, self._cache, self._native = decoder, cache, native  # held as long as there are pointers
        self._operations = NativeOperations(native)
        first: Any = decoder.layers[0]
        hidden, mlp = first.gate_up.inputs, first.down.inputs
        heads = (decoder.heads + 2 * decoder.kv_heads) * decoder.head_dim
        self._widths = hidden, max(heads, 2 * mlp), max(decoder.heads * decoder.head_dim, mlp)
        self._layers = (_Layer * len(decoder.layers))()
        for native_layer, layer, pool in zip(self._layers, decoder.layers, cache.pools, strict=True):
            for name in MATRICES:
                packed, bias = getattr(layer, name).addresses
                setattr(native_layer, name, _Matrix(packed, bias))
            for name in _NORMS:
                weight = getattr(layer, name)
                setattr(native_layer, name, None if weight is None else weight.data_ptr())
            native_layer.keys, native_layer.values = pool.data_ptr(), pool.data_ptr() + pool.nbytes // 2
        self._struct = _Decoder(
            layers=ctypes.addressof(self._layers),
            count=len(decoder.layers),
            hidden=hidden,
            heads=decoder.heads,
            kv_heads=decoder.kv_heads,
            head_dim=decoder.head_dim,
            mlp=mlp,
            eps=decoder.eps,
            scale=decoder.scale,
            half=first.qkv.halved,
        )

    @staticmethod
    def takes(decoder: Decoder) -> bool:
        """Whether this decoder's layers are packed for the compiled code."""
        return all(isinstance(getattr(layer, name), NativeLinear) for layer in decoder.layers for name in MATRICES)

    def __call__(self, ids: Tensor, positions: Tensor, sampled: Tensor, paged: Paged) -> Tensor:
        assert isinstance(paged, NativePaged)
        decoder, rows = self._decoder, len(ids)
        cos, sin = decoder.cos[positions], decoder.sin[positions]
        residual = decoder.embedding[ids]
        x, wide, narrow = (torch.empty(rows, width) for width in self._widths)
        self._struct.threads = torch.get_num_threads() if self._native.threaded else 1
        self._native.decode(
            ctypes.addressof(self._struct),
            paged.address,
            *(part.data_ptr() for part in (cos, sin)),
            rows,
            *(part.data_ptr() for part in (residual, x, wide, narrow)),
        )
        paged.layers += len(decoder.layers)
        last = residual[sampled]
        logits: Tensor = decoder.head(self._operations.add_rms_norm(x[sampled], last, decoder.norm, decoder.eps))
        return logits

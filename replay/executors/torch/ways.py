"""From what is asked for to what computes steps: attention, linears and the forward pass that a device has.

It knows which of them there are and where each can be used; what they compute is theirs.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from replay.errors import EngineError
from replay.executors.torch.attention import Paged, TorchPaged
from replay.executors.torch.computing import Computing
from replay.executors.torch.decoder import Decoder
from replay.executors.torch.forward import Forward, build_forward
from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.layout import Layout
from replay.executors.torch.linears import choose
from replay.executors.torch.native.attention import NativeOperations, NativePaged, largest, native_for
from replay.executors.torch.native.decoder import NativeDecoder
from replay.executors.torch.native.library import Native, load
from replay.executors.torch.operations import Operations, TorchOperations
from replay.executors.torch.steps import Steps, TorchSteps


@dataclass(slots=True, frozen=True)
class Way:
    """How steps come to be computed, for the manifest. `agreement`: see `forward.Built`."""

    forward: str  # "fused" or "modules"
    linears: str
    attention: str
    native_code: str | None  # on a CPU: what became of the compiled code
    agreement: float


def build_steps(model: PreTrainedModel, cache: KVCache, computing: Computing, *, positions: int) -> tuple[Steps, Way]:
    """What computes the steps of `model`, of which it may take the weights away; `positions` is how long a sequence can
    be. Raises EngineError for what is asked for and cannot be used here, and for a model that cannot be paged."""
    parameter = next(model.parameters())
    device, dtype = parameter.device, parameter.dtype
    heads: int = model.config.get_text_config().num_attention_heads
    linears = choose(computing.linears, device, dtype)
    attention = _choose_attention(computing.attention, device, dtype, cache.dtype)
    built = build_forward(
        model,
        cache,
        linears=linears,
        operations=_operations(attention),
        fused=computing.fused,
        positions=positions,
    )
    fused = isinstance(built.forward, Decoder)
    way = Way(
        forward="fused" if fused else "modules",
        linears=linears,
        attention=attention,
        native_code=native_for(dtype, cache.dtype, device)[1] if device.type == "cpu" else None,
        agreement=built.agreement,
    )
    if attention == "triton":
        # Triton comes with CUDA builds of PyTorch only
        from replay.executors.torch.triton import operations as triton_operations
        from replay.executors.torch.triton.steps import TritonSteps

        choose_ids = computing.sampling.by(triton_operations.largest)
        graphs = computing.graphs and device.type == "cuda" and fused
        return TritonSteps(built.forward, cache, choose_ids, heads=heads, positions=positions, graphs=graphs), way
    forward: Forward = built.forward
    if attention == "native" and isinstance(forward, Decoder) and NativeDecoder.takes(forward):
        forward = NativeDecoder(forward, cache, _native())
    greedy: Callable[[Tensor], Tensor] = _native_greedy() if attention == "native" else _greedy
    return TorchSteps(forward, device, _paged(attention, cache, dtype, heads), computing.sampling.by(greedy)), way


def _choose_attention(kind: str, device: torch.device, dtype: torch.dtype, kv_dtype: torch.dtype) -> str:
    """The kind of attention to use; EngineError where one is asked for that cannot be used here."""
    if kind == "torch":
        return kind
    if kind == "triton" or device.type == "cuda":
        missing = _no_triton(device)
        if kind == "triton" and missing is not None:
            raise EngineError(f"engine.attention = 'triton' cannot be used: {missing}; 'auto' takes what there is")
        if missing is None and kind != "native":
            return "triton"
    native, reason = native_for(dtype, kv_dtype, device)
    if kind == "native" and native is None:
        raise EngineError(f"engine.attention = 'native' cannot be used: {reason}; 'auto' takes what there is")
    return "torch" if native is None else "native"


def _no_triton(device: torch.device) -> str | None:
    """Why our Triton kernels cannot be used; None where they can: on CUDA, and for tests in Triton's interpreter."""
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"its kernels are for a CUDA device, and the model is on {device}"
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed; CUDA builds of PyTorch bring it"
    return None


def _paged(attention: str, cache: KVCache, dtype: torch.dtype, heads: int) -> Callable[[Layout], Paged]:
    """What prepares a step's attention of this kind."""
    if attention != "native":
        return lambda layout: TorchPaged(layout, cache, dtype)
    native = _native()
    return lambda layout: NativePaged(layout, cache, native, heads)


def _operations(attention: str) -> Operations:
    if attention == "native":
        return NativeOperations(_native())
    if attention != "triton":
        return TorchOperations()
    from replay.executors.torch.triton.operations import TritonOperations

    return TritonOperations()


def _native() -> Native:
    """The compiled code, where it was found usable before."""
    native, reason = load()
    assert native is not None, reason
    return native


def _greedy(logits: Tensor) -> Tensor:
    return logits.argmax(dim=-1)


def _native_greedy() -> Callable[[Tensor], Tensor]:
    native = _native()
    return lambda logits: largest(native, logits)

"""The small operations of a decoder between its matrix products, in plain PyTorch on any device.

The CUDA path has the same operations as kernels of its own. They know nothing of layers.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional


class Operations(Protocol):
    """What a decoder computes besides matrix products and attention. Tensors are [tokens, ...]."""

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """x / sqrt(mean(x ** 2) + eps) * weight over the last dimension, the mean in float32."""

    def add_rms_norm(self, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
        """Add x to `residual`, in place, and norm the sum."""

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """silu(gate) * up of [tokens, 2 * n], gate first: [tokens, n]."""


class TorchOperations:
    """`Operations` in plain PyTorch."""

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        return functional.rms_norm(x, (x.shape[-1],), weight, eps)

    def add_rms_norm(self, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
        return self.rms_norm(residual.add_(x), weight, eps)

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        gate, up = gate_up.chunk(2, dim=-1)
        return functional.silu(gate).mul_(up)


def rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions (Su et al., RoFormer, 2021) of heads [tokens, n, head_dim]; `cos`, `sin` [tokens, head_dim / 2].

    Pairs are a number of the first half and its counterpart in the second, as Llama's weights have them.
    """
    half = heads.shape[-1] // 2
    first, second = heads[..., :half], heads[..., half:]
    cos, sin = cos.unsqueeze(1).to(heads.dtype), sin.unsqueeze(1).to(heads.dtype)
    rotated = torch.empty_like(heads)
    torch.sub(first * cos, second * sin, out=rotated[..., :half])
    torch.add(second * cos, first * sin, out=rotated[..., half:])
    return rotated

"""A decoder's small operations, and the largest logit, through our Triton kernels: what a CUDA device uses.

They know tensors, and nothing of layers.
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from replay.executors.torch.triton import small_kernels as kernels

COLUMNS = 4096  # of the logits, in which one program looks for the largest


class TritonOperations:
    """The decoder's small operations, a kernel each."""

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """x / sqrt(mean(x ** 2) + eps) * weight over the last dimension, in float32."""
        flat = x.reshape(-1, x.shape[-1])
        return _norm(flat, flat, weight, eps, add=False).view(x.shape)

    def add_rms_norm(self, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
        """Add x to `residual`, in place, and norm the sum."""
        return _norm(x, residual, weight, eps, add=True)

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """silu(gate) * up of [tokens, 2 * n]."""
        rows, width = gate_up.shape[0], gate_up.shape[1] // 2
        out = torch.empty((rows, width), device=gate_up.device, dtype=gate_up.dtype)
        columns = 1024
        kernels.silu_and_multiply[(rows, triton.cdiv(width, columns))](gate_up, out, width, columns)
        return out


def _norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float, *, add: bool) -> Tensor:
    width = x.shape[-1]
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    padded = triton.next_power_of_2(width)
    kernels.norm_rows[(len(x),)](x, residual, weight, out, x.stride(0), eps, width, padded, add)
    return out


def largest(logits: Tensor) -> Tensor:
    """The column of the largest of each row [rows, columns], the lowest among equals: [rows]."""
    rows, columns = logits.shape
    parts = triton.cdiv(columns, COLUMNS)
    values = torch.empty((rows, parts), device=logits.device, dtype=torch.float32)
    places = torch.empty((rows, parts), device=logits.device, dtype=torch.int32)
    out = torch.empty(rows, device=logits.device, dtype=torch.int64)
    kernels.largest_in_parts[(rows, parts)](logits.contiguous(), values, places, columns, COLUMNS)
    kernels.largest_of_parts[(rows,)](values, places, out, parts, triton.next_power_of_2(parts))
    return out

"""The matrix products with weights, behind one small interface: plain, packed by oneDNN, packed by FBGEMM in float16.

A packed weight is laid out once for the processor's vector units and its caches. What that gains and what it keeps
the same differs: see `KINDS`. It knows weights and modules, and nothing of attention or steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from replay.errors import EngineError
from replay.registry import nearest

# What each kind is, for reports.
KINDS = {
    "plain": "as PyTorch computes them; a row's last bits depend on the size of its batch",
    "onednn": "float32, packed by oneDNN; a row is the same to the last bit in every batch",
    "fp16": "weights in float16, packed by FBGEMM, sums in float32; a row's last bits may depend on its batch",
}
PACKED_FOR = 32  # rows that oneDNN lays weights out for; laid out for 1 row they are summed in another order


class PlainLinear(nn.Module):
    """x [..., in] -> [..., out] by `functional.linear`, on any device in any number type."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)


class OneDNNLinear(nn.Module):
    """x [..., in] -> [..., out] in float32 with a weight in oneDNN's blocked layout."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), PACKED_FOR)
        self.bias = None if bias is None else bias.clone()
        self._linear: Callable[..., Tensor] = torch.ops.mkldnn._linear_pointwise.default

    def forward(self, x: Tensor) -> Tensor:
        if x.numel() == x.shape[-1]:  # a row alone is summed in another order where rows are long: compute it twice
            pair = self._linear(x.reshape(1, -1).expand(2, -1), self.packed, self.bias, "none", [], "")
            return pair[0].view(*x.shape[:-1], -1)
        return self._linear(x, self.packed, self.bias, "none", [], "")


class Float16Linear(nn.Module):
    """x [..., in] -> [..., out] in float32 with a weight rounded to float16 in FBGEMM's blocked layout."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        _silence_fbgemm()
        self.packed = torch.fbgemm_pack_gemm_matrix_fp16(weight.contiguous())
        self.bias = None if bias is None else bias.clone()

    def forward(self, x: Tensor) -> Tensor:
        return torch.fbgemm_linear_fp16_weight_fp32_activation(x, self.packed, self.bias)


_CLASSES: dict[str, type[nn.Module]] = {"plain": PlainLinear, "onednn": OneDNNLinear, "fp16": Float16Linear}


def pack(weight: Tensor, bias: Tensor | None, kind: str) -> nn.Module:
    """A module for x [..., in] -> x weight^T + bias [..., out], of `weight` [out, in], `bias` [out] and a kind.

    The packed kinds copy both, so that the originals may go. Raises EngineError for a kind that is not usable here.
    """
    return _CLASSES[choose(kind, weight.device, weight.dtype)](weight.detach(), None if bias is None else bias.detach())


def choose(kind: str, device: torch.device, dtype: torch.dtype) -> str:
    """The kind to use where `kind` is asked for; "auto" is oneDNN where that is usable, else plain.

    Raises EngineError for what is no kind, and for a kind that is not usable here.
    """
    if kind == "auto":
        return "onednn" if usable("onednn", device, dtype) is None else "plain"
    if kind not in KINDS:
        raise EngineError(f"engine.linears = {kind!r} is no kind of linears: {nearest(kind, ['auto', *KINDS])}")
    reason = usable(kind, device, dtype)
    if reason is not None:
        raise EngineError(f"engine.linears = {kind!r} cannot be used: {reason}; 'auto' takes what there is")
    return kind


def usable(kind: str, device: torch.device, dtype: torch.dtype) -> str | None:
    """Why linears of this kind cannot be used for a model on this device in this number type; None where they can."""
    if kind == "plain":
        return None
    if device.type != "cpu":
        return f"packed weights are for a CPU, and the model is on {device}"
    if dtype != torch.float32:
        return f"they compute in float32, and the model is in {str(dtype).removeprefix('torch.')}"
    return _fault(kind)


@cache
def _fault(kind: str) -> str | None:
    """What is missing on this processor or in this PyTorch for a packed kind, found out by trying."""
    if kind == "fp16" and "fbgemm" not in torch.backends.quantized.supported_engines:
        return "FBGEMM is not in this PyTorch or not for this processor (it needs x86 with AVX2)"
    if kind == "onednn" and not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]  # it has no annotations
        return "oneDNN is not in this PyTorch"
    try:
        with torch.inference_mode():
            weight, x = torch.ones(8, 4), torch.ones(2, 4)
            right = bool((_CLASSES[kind](weight, torch.ones(8))(x) == 5).all())
    except (AttributeError, RuntimeError) as error:
        return f"PyTorch {torch.__version__} refuses it: {str(error).splitlines()[0]}"
    return None if right else f"PyTorch {torch.__version__} computes wrong numbers with it"


@cache
def _silence_fbgemm() -> None:
    """Have PyTorch say, once and to nobody, that FBGEMM's float16 products may go in a later version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packed = torch.fbgemm_pack_gemm_matrix_fp16(torch.ones(1, 1))
        torch.fbgemm_linear_fp16_weight_fp32_activation(torch.ones(1, 1), packed, None)


def replace_linears(model: PreTrainedModel, kind: str) -> int:
    """Pack the weights of every linear layer of `model` in place, its head included; how many were packed.

    Each matrix is let go as soon as it is packed, so that memory holds one more at most; a matrix that is also the
    embedding stays for that. Plain linears are left as they are. The packed weights are no parameters any more: count
    those before. Raises EngineError for a kind that is not usable for this model.
    """
    if kind == "plain":
        return 0
    packed: dict[nn.Module, nn.Module] = {}
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) not in (nn.Linear, Conv1D):
                continue
            if child not in packed:
                matrix = child.weight
                assert isinstance(matrix, Tensor)
                bias = child.bias
                assert bias is None or isinstance(bias, Tensor)
                packed[child] = pack(matrix.T if isinstance(child, Conv1D) else matrix, bias, kind)
            setattr(parent, name, packed[child])
    return len(packed)

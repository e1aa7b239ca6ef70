"""The matrix products with weights, behind one small interface: plain, or packed in float32 or float16.

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
from replay.executors.torch.native.library import Native, load
from replay.registry import nearest

# What each kind is, for reports.
KINDS = {
    "plain": "as PyTorch computes them; a row's last bits depend on the size of its batch",
    "onednn": "float32, packed by oneDNN; a row is the same to the last bit in every batch",
    "native": "float32, packed for this package's compiled code; a row is the same to the last bit in every batch",
    "fp16": "weights in float16, sums in float32, by the compiled code where there is one, else by FBGEMM",
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
            row = x.reshape(1, -1)
            pair = self._linear(torch.cat((row, row)), self.packed, self.bias, "none", [], "")
            return pair[0].view(*x.shape[:-1], -1)
        return self._linear(x, self.packed, self.bias, "none", [], "")


class NativeLinear(nn.Module):
    """x [..., in] -> [..., out] in float32 by the compiled code, with a weight in float32 or, if `half`, float16."""

    def __init__(self, native: Native, weight: Tensor, bias: Tensor | None, *, half: bool) -> None:
        super().__init__()
        self._native, self.halved = native, half
        self._outputs, self.inputs = weight.shape
        weight = weight.contiguous()
        size = native.packed_size(self._outputs, self.inputs)
        self.packed = torch.empty(size, dtype=torch.float16 if half else torch.float32)
        self.bias = None if bias is None else bias.clone()
        native.pack(weight.data_ptr(), self._outputs, self.inputs, half, self.packed.data_ptr())
        self.addresses = self.packed.data_ptr(), None if self.bias is None else self.bias.data_ptr()

    def forward(self, x: Tensor) -> Tensor:
        assert x.dtype == torch.float32
        assert x.shape[-1] == self.inputs
        x = x.contiguous()
        result = torch.empty((*x.shape[:-1], self._outputs))
        self._native.linear(
            x.data_ptr(),
            *self.addresses,
            x.numel() // self.inputs,
            self.inputs,
            self._outputs,
            self.halved,
            torch.get_num_threads() if self._native.threaded else 1,
            result.data_ptr(),
        )
        return result


class FBGEMMLinear(nn.Module):
    """x [..., in] -> [..., out] in float32 with a weight rounded to float16 in FBGEMM's blocked layout."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        _silence_fbgemm()
        self.packed = torch.fbgemm_pack_gemm_matrix_fp16(weight.contiguous())
        self.bias = None if bias is None else bias.clone()

    def forward(self, x: Tensor) -> Tensor:
        return torch.fbgemm_linear_fp16_weight_fp32_activation(x, self.packed, self.bias)


def pack(weight: Tensor, bias: Tensor | None, kind: str) -> nn.Module:
    """A module for x [..., in] -> x weight^T + bias [..., out], of `weight` [out, in], `bias` [out] and a kind.

    The packed kinds copy both, so that the originals may go. Raises EngineError for a kind that is not usable here.
    """
    kind = choose(kind, weight.device, weight.dtype)
    return _build(kind, weight.detach(), None if bias is None else bias.detach())


def _build(kind: str, weight: Tensor, bias: Tensor | None) -> nn.Module:
    native, _ = load() if kind in ("native", "fp16") else (None, "")
    if native is not None and (kind == "native" or native.half):
        return NativeLinear(native, weight, bias, half=kind == "fp16")
    return {"plain": PlainLinear, "onednn": OneDNNLinear, "fp16": FBGEMMLinear}[kind](weight, bias)


def choose(kind: str, device: torch.device, dtype: torch.dtype) -> str:
    """The kind to use where `kind` is asked for; "auto" is the first usable of native, onednn and plain.

    Raises EngineError for what is no kind, and for a kind that is not usable here.
    """
    if kind == "auto":
        return next(kind for kind in ("native", "onednn", "plain") if usable(kind, device, dtype) is None)
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
    native, reason = load() if kind in ("native", "fp16") else (None, "")
    if kind == "native" and native is None:
        return f"there is no compiled code: {reason}"
    if (
        kind == "fp16"
        and not (native is not None and native.half)
        and "fbgemm" not in torch.backends.quantized.supported_engines
    ):
        return "there is neither compiled code for float16 here nor FBGEMM (they need x86 with AVX2)"
    if kind == "onednn" and not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]  # it has no annotations
        return "oneDNN is not in this PyTorch"
    try:
        with torch.inference_mode():
            weight, x = torch.ones(8, 4), torch.ones(2, 4)
            right = bool((_build(kind, weight, torch.ones(8))(x) == 5).all())
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

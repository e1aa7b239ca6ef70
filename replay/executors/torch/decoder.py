"""A decoder like Llama's as one straight function: projections fused, no module calls, nothing but a step's tokens.

It takes its weights from a transformers model, and is used only where its logits are that model's. It knows layers, and
leaves attention to `Paged` and matrix products to `linears`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from replay.executors.torch.attention import Paged
from replay.executors.torch.linears import PlainLinear, pack
from replay.executors.torch.operations import Operations

LIKE_LLAMA = ("llama", "mistral", "qwen2", "qwen3")  # model types whose layers are these, give or take biases and norms

Linear = Callable[[Tensor], Tensor]
MATRICES = ("qkv", "out", "gate_up", "down")


@dataclass(slots=True)
class Layer:
    """One layer's weights: `qkv` gives queries, keys and values side by side, `gate_up` both halves of the gate."""

    norm: Tensor
    qkv: Linear
    query_norm: Tensor | None
    key_norm: Tensor | None
    out: Linear
    feed_norm: Tensor
    gate_up: Linear
    down: Linear


class Decoder:
    """Logits of packed tokens. `cos` and `sin` [positions, head_dim / 2] are the rotary tables, in float32."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        operations: Operations,
        positions: int,
    ) -> None:
        """Take the weights of `model`, which must be `fusible`; its layers lose theirs, so that none is kept twice.

        `positions` is the length of the longest sequence.
        """
        inner: Any = model.model
        attention = inner.layers[0].self_attn
        self.heads = int(model.config.num_attention_heads)
        self.head_dim = int(attention.head_dim)
        self.kv_heads = int(model.config.num_key_value_heads)
        self.scale = float(attention.scaling)
        self.eps = float(inner.norm.variance_epsilon)
        self._operations = operations
        self.embedding: Tensor = inner.embed_tokens.weight.detach()
        self.cos, self.sin = _rotary(inner, positions)
        self.layers = [_take(layer) for layer in inner.layers]
        self.norm: Tensor = inner.norm.weight.detach()
        head: Any = model.lm_head
        self.head: nn.Module = _fuse([head])

    def pack(self, kind: str) -> None:
        """Lay the weights out for linears of this kind, one matrix after the other."""
        if kind == "plain":
            return
        for layer in self.layers:
            for name in MATRICES:
                plain: PlainLinear = getattr(layer, name)
                setattr(layer, name, pack(plain.weight, plain.bias, kind))
        assert isinstance(self.head, PlainLinear), "weights are packed once"
        self.head = pack(self.head.weight, self.head.bias, kind)

    def __call__(self, ids: Tensor, positions: Tensor, sampled: Tensor, paged: Paged) -> Tensor:
        """Logits [sampled, vocabulary] after the tokens `sampled` of `ids` [tokens] at `positions` [tokens]."""
        operations, eps = self._operations, self.eps
        cos, sin = self.cos[positions], self.sin[positions]
        residual = self.embedding[ids]
        x = operations.rms_norm(residual, self.layers[0].norm, eps)
        for number, layer in enumerate(self.layers):
            if number:
                x = operations.add_rms_norm(x, residual, layer.norm, eps)
            x = self._attention(number, layer, x, cos, sin, paged)
            x = operations.add_rms_norm(x, residual, layer.feed_norm, eps)
            x = layer.down(operations.silu_mul(layer.gate_up(x)))
        x = operations.rms_norm(residual[sampled].add_(x[sampled]), self.norm, eps)
        logits: Tensor = self.head(x)
        return logits

    def _attention(self, number: int, layer: Layer, x: Tensor, cos: Tensor, sin: Tensor, paged: Paged) -> Tensor:
        heads = layer.qkv(x).view(len(x), self.heads + 2 * self.kv_heads, self.head_dim)
        if layer.query_norm is not None and layer.key_norm is not None:
            end = self.heads + self.kv_heads
            query = self._operations.rms_norm(heads[:, : self.heads], layer.query_norm, self.eps)
            key = self._operations.rms_norm(heads[:, self.heads : end], layer.key_norm, self.eps)
            heads = torch.cat([query, key, heads[:, end:]], dim=1)
        attended = paged.rotate_and_attend(number, heads, cos, sin, self.scale)
        return layer.out(attended.reshape(len(x), -1))


def fusible(model: PreTrainedModel) -> bool:
    """Whether `Decoder` is made for such a model: by its type, its activation, a plain rotation of whole heads, and
    linears that are nothing else (quantised ones are)."""
    config = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        config.model_type in LIKE_LLAMA
        and getattr(config, "hidden_act", None) == "silu"
        and rope.get("rope_type", "default") not in ("dynamic", "longrope")
        and all(type(module) is nn.Linear for module in model.modules() if isinstance(module, nn.Linear))
    )


def _rotary(inner: Any, positions: int) -> tuple[Tensor, Tensor]:
    """The model's own rotary tables of so many positions: both halves of a head turn by the same angles."""
    index = torch.arange(positions, device=inner.embed_tokens.weight.device)[None]
    cos, sin = inner.rotary_emb(torch.empty(0, device=index.device, dtype=torch.float32), index)
    half = cos.shape[-1] // 2
    return cos[0, :, :half].contiguous(), sin[0, :, :half].contiguous()


def _take(layer: Any) -> Layer:
    attention, feed = layer.self_attn, layer.mlp
    query_norm, key_norm = getattr(attention, "q_norm", None), getattr(attention, "k_norm", None)
    taken = Layer(
        norm=layer.input_layernorm.weight.detach(),
        qkv=_fuse([attention.q_proj, attention.k_proj, attention.v_proj]),
        query_norm=None if query_norm is None else query_norm.weight.detach(),
        key_norm=None if key_norm is None else key_norm.weight.detach(),
        out=_fuse([attention.o_proj]),
        feed_norm=layer.post_attention_layernorm.weight.detach(),
        gate_up=_fuse([feed.gate_proj, feed.up_proj]),
        down=_fuse([feed.down_proj]),
    )
    for linear in (
        attention.q_proj,
        attention.k_proj,
        attention.v_proj,
        attention.o_proj,
        feed.gate_proj,
        feed.up_proj,
        feed.down_proj,
    ):
        # Not a slice of what it was: that would hold all of it.
        linear.weight = nn.Parameter(linear.weight.new_empty(0, linear.in_features), requires_grad=False)
    return taken


def _fuse(linears: list[nn.Linear]) -> PlainLinear:
    """Linears with the same input as one, their outputs side by side."""
    weight = (
        torch.cat([linear.weight.detach() for linear in linears]) if len(linears) > 1 else linears[0].weight.detach()
    )
    biases = [linear.bias for linear in linears]
    if all(bias is None for bias in biases):
        return PlainLinear(weight, None)
    filled = [
        torch.zeros(len(linear.weight), dtype=weight.dtype, device=weight.device) if bias is None else bias.detach()
        for linear, bias in zip(linears, biases, strict=True)
    ]
    return PlainLinear(weight, torch.cat(filled))

"""From packed tokens to logits: through a transformers model's own modules, or straight where its like is known.

It knows models and what computes their parts; it knows no requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from replay.errors import EngineError
from replay.executors.torch.attention import IMPLEMENTATION, Paged, TorchPaged
from replay.executors.torch.decoder import Decoder, fusible
from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.layout import Row, Rows, lay_out
from replay.executors.torch.linears import replace_linears
from replay.executors.torch.models import max_context
from replay.executors.torch.operations import Operations

PROBE = 64  # tokens of the prompt on which ways to compute are compared
TOLERANCE = {torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}  # relative to the largest logit


class Forward(Protocol):
    """Logits [sampled, vocabulary] that follow the tokens `sampled` among `ids` [tokens] at `positions` [tokens]."""

    def __call__(self, ids: Tensor, positions: Tensor, sampled: Tensor, paged: Paged) -> Tensor: ...


class ModuleForward:
    """`Forward` by the modules of a transformers model, whose attention must be the paged one."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model

    def __call__(self, ids: Tensor, positions: Tensor, sampled: Tensor, paged: Paged) -> Tensor:
        output = self._model(
            input_ids=ids[None],
            position_ids=positions[None],
            use_cache=False,
            logits_to_keep=sampled,
            paged=paged,
        )
        return cast(Tensor, output.logits[0])


@dataclass(slots=True, frozen=True)
class Built:
    """A `Forward`, and for which share of some tokens it finds the same likeliest successor as the model's modules do,
    with plain linears and plain attention."""

    forward: Forward
    agreement: float


def build_forward(
    model: PreTrainedModel, cache: KVCache, *, linears: str, operations: Operations, fused: bool, positions: int
) -> Built:
    """The fastest way from tokens to logits for `model`, of which it may take the weights away.

    `Decoder` where the model's like is known and a few tokens get the logits of the modules, else the modules with
    their linears packed. `positions` is how long a sequence can be. Raises EngineError for a model that cannot be
    paged.
    """
    modules = ModuleForward(model)
    expected = _probe(modules, model, cache)
    if fused and fusible(model):
        # Plain linears first: what is compared is the decoder, not what packing rounds.
        straight = Decoder(model, operations=operations, positions=positions)
        found = _probe(straight, model, cache)
        tolerance = TOLERANCE[expected.dtype] * expected.abs().max()
        if (found - expected).abs().max() > tolerance:
            raise EngineError(
                f"{type(model).__name__} is not the decoder that its type promises: the fused path's logits differ by "
                f"{float((found - expected).abs().max()):.3g}; write engine.fused = false"
            )
        straight.pack(linears)
        return Built(straight, _agreement(_probe(straight, model, cache), expected))
    if replace_linears(model, linears):
        return Built(modules, _agreement(_probe(modules, model, cache), expected))
    return Built(modules, 1.0)


def _agreement(found: Tensor, expected: Tensor) -> float:
    return float((found.argmax(dim=-1) == expected.argmax(dim=-1)).float().mean())


@torch.inference_mode()
def _probe(forward: Forward, model: PreTrainedModel, cache: KVCache) -> Tensor:
    """The logits after each of a few tokens; EngineError unless each layer attended once. It writes over the pool."""
    tokens = min(PROBE, cache.blocks * cache.block_size, max_context(model) or PROBE)
    vocabulary = model.config.get_text_config().vocab_size
    ids = (torch.arange(1, tokens + 1) * 7919 % vocabulary).int().numpy()
    row = Row(ids, 0, range(-(-tokens // cache.block_size)), samples=True)
    layout = lay_out(Rows.of([row]), None, cache.block_size, cache.spare_block)
    parameter = next(model.parameters())
    paged = TorchPaged(layout, cache, parameter.dtype)
    ids, positions, sampled = (
        torch.from_numpy(numbers).to(cache.device) for numbers in (layout.ids, layout.positions, np.arange(tokens))
    )
    logits = forward(ids, positions, sampled, paged)
    if paged.layers != cache.layers:
        raise EngineError(
            f"{type(model).__name__} called the paged attention {paged.layers} times for its {cache.layers} layers; "
            f"a model is needed that calls {IMPLEMENTATION} once in each"
        )
    return logits

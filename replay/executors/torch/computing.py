"""How an executor is asked to compute: which linears and attention, which number types, how a token is chosen.

Only names and numbers; what comes of them is in `ways`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from replay.executors.torch.sampling import sample
from replay.executors.torch.steps import Sample


@dataclass(slots=True, frozen=True)
class Sampling:
    """How a token is chosen: greedily at temperature 0, else drawn as `sampling.sample` says."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0

    def by(self, greedy: Callable[[Tensor], Tensor]) -> Sample:
        """The function that does it; `greedy` finds the largest logits."""
        if not self.temperature:
            return lambda logits, draws: greedy(logits)
        return lambda logits, draws: sample(
            logits, draws, temperature=self.temperature, top_k=self.top_k, top_p=self.top_p
        )


@dataclass(slots=True, frozen=True)
class Computing:
    """How an executor computes. `None`: as fits the device."""

    linears: str = "plain"  # "auto", "plain", "onednn", "native", "fp16"
    attention: str = "auto"  # "auto", "torch", "native", "triton"
    kv_dtype: torch.dtype | None = None  # of keys and values in the pool; None: as the model's
    fused: bool = True  # a straight decoder in place of the model's modules, where its like is known
    graphs: bool = True  # steps as CUDA graphs
    overlap: bool | None = None  # whether the next step may be handed over while one is computed
    host_blocks: int = 0
    sampling: Sampling = Sampling()
    end_ids: frozenset[int] = frozenset()  # tokens that end an answer; none: answers have the lengths of the trace

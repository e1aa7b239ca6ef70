"""What a job asks of a machine, counted from the shapes of a Llama-like model: floating-point operations.

It knows neither who computes them nor how fast.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from job import Job


@dataclass(frozen=True)
class Shape:
    """A decoder with grouped attention and a gated MLP; tied or not, its head is one more matrix to multiply with."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp: int
    vocabulary: int

    @property
    def layer_weights(self) -> int:
        """Numbers in the matrices of all layers, each multiplied with every token: Q, K, V, output, gate, up, down."""
        attention = 2 * self.heads * self.head_dim + 2 * self.kv_heads * self.head_dim
        return self.layers * self.hidden * (attention + 3 * self.mlp)

    @property
    def head_weights(self) -> int:
        """Numbers in the matrix that gives the logits, multiplied where a token is sampled."""
        return self.vocabulary * self.hidden

    def flop(self, job: Job) -> int:
        """Floating-point operations of a job, a multiplication and an addition being two.

        The last token of an answer is sampled and never computed, so `prompt + output - 1` tokens are. Each attends
        to itself and all before it: one product of a query with a key and one with a value.
        """
        pair = 4 * self.layers * self.heads * self.head_dim
        total = 0
        for work in job.requests:
            tokens = len(work.prompt) + work.output - 1
            total += 2 * self.layer_weights * tokens + 2 * self.head_weights * work.output
            total += pair * tokens * (tokens + 1) // 2
        return total


def read_shape(model: Path) -> Shape:
    """The shape that a model folder's config.json tells."""
    config = json.loads((model / "config.json").read_text())
    heads: int = config["num_attention_heads"]
    return Shape(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=config.get("head_dim") or config["hidden_size"] // heads,
        mlp=config["intermediate_size"],
        vocabulary=config["vocab_size"],
    )

"""What a decoder's shape says without its weights: parameters, KV bytes, arithmetic and traffic of a step.

Counted from the numbers of its configuration, so it needs neither torch nor transformers. It does not know how fast
anything is, and takes every layer to be plain attention and a dense feed-forward network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

UNGATED = ("gpt2", "gpt_neox", "opt", "phi", "gptj", "bloom", "starcoder2")  # two matrices in a feed-forward, not three


@dataclass(slots=True, frozen=True)
class ModelShape:
    """A decoder's numbers. `gated`: its feed-forward networks have three matrices, as in Llama, and not two."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool
    gated: bool = True

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ModelShape:
        """From a configuration as transformers writes it (`config.to_dict()`), or one of the named shapes."""
        heads = config.get("num_attention_heads") or config["n_head"]
        hidden = config.get("hidden_size") or config["n_embd"]
        return cls(
            layers=config.get("num_hidden_layers") or config["n_layer"],
            hidden=hidden,
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or hidden // heads,
            intermediate=config.get("intermediate_size") or config.get("n_inner") or 4 * hidden,
            vocabulary=config["vocab_size"],
            tied=bool(config.get("tie_word_embeddings", True)),
            gated=config.get("model_type") not in UNGATED,
        )

    @property
    def layer_parameters(self) -> int:
        """Numbers in the matrices of all layers: each token is multiplied with each of them once."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return self.layers * (attention + (3 if self.gated else 2) * self.hidden * self.intermediate)

    @property
    def head_parameters(self) -> int:
        """Numbers in the matrix that gives the logits: used only where a token is sampled."""
        return self.hidden * self.vocabulary

    @property
    def parameters(self) -> int:
        """All matrices; norms and biases, well under a hundredth, are left out."""
        return self.layer_parameters + (1 if self.tied else 2) * self.head_parameters

    def kv_token_bytes(self, itemsize: int) -> int:
        """Bytes that one token's keys and values take in all layers, in numbers of `itemsize` bytes."""
        return 2 * self.layers * self.kv_heads * self.head_dim * itemsize

    def flops(self, tokens: int, samples: int, pairs: int) -> int:
        """Floating-point operations of a step: two for each number of a matrix and token, four for each number of a
        head and pair of tokens (a product with the key, one with the value)."""
        matrices = 2 * (tokens * self.layer_parameters + samples * self.head_parameters)
        return matrices + 4 * pairs * self.layers * self.heads * self.head_dim

    def traffic(self, tokens: int, samples: int, context: int, *, weight_itemsize: int, kv_itemsize: int) -> int:
        """The fewest bytes that a step must move: every matrix once, the context's keys and values, and the new ones.

        Activations and embeddings are left out; the matrix of the logits counts if a token is sampled.
        """
        weights = self.layer_parameters + (self.head_parameters if samples else 0)
        return weights * weight_itemsize + (context + tokens) * self.kv_token_bytes(kv_itemsize)

"""What a decoder's shape says without its weights: parameters, KV bytes, arithmetic and traffic of a step.

Counted from the numbers of its configuration, so it needs neither torch nor transformers. It does not know how fast
anything is, and takes every layer to be plain attention and a dense feed-forward network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

UNGATED = ("gpt2", "gpt_neox", "opt", "phi", "gptj", "bloom", "starcoder2")  # two matrices in a feed-forward, not three
BIASED = ("gpt2", "gpt_neox", "opt", "starcoder2")  # a bias beside every matrix of a layer and every norm
FOUR_NORMS = ("gemma2", "gemma3_text")  # in a layer: before and after both its parts
HEAD_NORMS = ("qwen3", "gemma3_text")  # queries and keys are normed, head by head
INTERMEDIATE = ("intermediate_size", "ffn_dim", "n_inner")  # names of the width of a feed-forward
POSITIONS = {"gpt2": 0, "opt": 2}  # positions are learned, and so many more than the model can take


@dataclass(slots=True, frozen=True)
class ModelShape:
    """A decoder's numbers. `gated`: its feed-forward networks have three matrices, as in Llama, and not two.

    `vectors` counts what it has beside matrices: norms, biases, learned positions.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool
    gated: bool = True
    vectors: int = 0

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ModelShape:
        """From a configuration as transformers writes it (`config.to_dict()`), or one of the named shapes.

        Raises KeyError where it names no layers, heads or sizes. `parameters` is exact for Llama and Mistral, Qwen2
        and 3, Phi-3, Gemma 1 to 3, GPT-2, GPT-NeoX, OPT and StarCoder2, and well within a hundredth for other dense
        decoders.
        """
        heads = config.get("num_attention_heads") or config["n_head"]
        hidden = config.get("hidden_size") or config["n_embd"]
        shape = cls(
            layers=config.get("num_hidden_layers") or config["n_layer"],
            hidden=hidden,
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or hidden // heads,
            intermediate=next((config[name] for name in INTERMEDIATE if config.get(name)), 4 * hidden),
            vocabulary=config["vocab_size"],
            tied=bool(config.get("tie_word_embeddings", True)),
            gated=config.get("model_type") not in UNGATED,
        )
        return replace(shape, vectors=_vectors(shape, config))

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
        """All numbers of the model: the embedding and the matrix that gives the logits are one where they are tied."""
        return self.layer_parameters + (1 if self.tied else 2) * self.head_parameters + self.vectors

    def kv_token_bytes(self, itemsize: int) -> int:
        """Bytes that one token's keys and values take in all layers, in numbers of `itemsize` bytes."""
        return 2 * self.layers * self.kv_heads * self.head_dim * itemsize

    def kv_arithmetic(self, itemsize: int) -> str:
        """How `kv_token_bytes` comes about, for a sentence."""
        return (
            f"2 (keys and values) x {self.layers} layers x {self.kv_heads} KV heads x {self.head_dim} numbers x "
            f"{itemsize} bytes"
        )

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


def _vectors(shape: ModelShape, config: Mapping[str, Any]) -> int:
    """Numbers in norms, biases and learned positions."""
    kind = config.get("model_type")
    biased = kind in BIASED
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    layer = (4 if kind in FOUR_NORMS else 2) * shape.hidden * (2 if biased else 1)
    if kind in HEAD_NORMS:
        layer += 2 * shape.head_dim
    if biased or kind == "qwen2" or config.get("attention_bias"):
        layer += queries + 2 * keys
    if biased or config.get("attention_bias"):
        layer += shape.hidden
    if biased or config.get("mlp_bias"):
        layer += (2 if shape.gated else 1) * shape.intermediate + shape.hidden
    positions = 0
    if kind in POSITIONS:
        positions = (config.get("n_positions") or config["max_position_embeddings"]) + POSITIONS[kind]
    return shape.layers * layer + shape.hidden * (2 if biased else 1) + positions * shape.hidden


def context_limit(config: Mapping[str, Any]) -> int | None:
    """The most tokens of prompt and answer for which a model attends to all of them, in plain positions.

    Beyond a sliding window, a chunk of local attention or the original length of a stretched rotary embedding the
    model computes something else than full attention does; up to there the two are the same. None: no limit is known.
    """
    layers = config.get("layer_types") or ()
    limits = [config.get("max_position_embeddings") or config.get("n_positions")]
    if not layers or "sliding_attention" in layers:
        limits.append(config.get("sliding_window"))
    if "chunked_attention" in layers:
        limits.append(config.get("attention_chunk_size"))
    rope = config.get("rope_parameters") or {}
    if rope.get("rope_type") in ("dynamic", "longrope"):
        limits.append(rope.get("original_max_position_embeddings") or config.get("original_max_position_embeddings"))
    known = [int(limit) for limit in limits if limit]
    return min(known) if known else None

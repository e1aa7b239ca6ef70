"""The named shapes: configurations of models whose weights need not be downloaded.

It knows numbers of layers and heads, and no weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_NO_SPECIAL = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}

_LLAMA_3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}

# The shapes are those of the models' published configurations; `tiny` is ours, small enough for two cores.
SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {
        "model_type": "llama",
        "vocab_size": 4096,
        "hidden_size": 256,
        "intermediate_size": 768,
        "num_hidden_layers": 6,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "max_position_embeddings": 32_768,
        "tie_word_embeddings": True,
    },
    "smollm2-135m": {
        "model_type": "llama",
        "vocab_size": 49_152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "max_position_embeddings": 8192,
        "rope_parameters": {"rope_type": "default", "rope_theta": 100_000.0},
        "tie_word_embeddings": True,
    },
    "smollm2-360m": {
        "model_type": "llama",
        "vocab_size": 49_152,
        "hidden_size": 960,
        "intermediate_size": 2560,
        "num_hidden_layers": 32,
        "num_attention_heads": 15,
        "num_key_value_heads": 5,
        "max_position_embeddings": 8192,
        "rope_parameters": {"rope_type": "default", "rope_theta": 100_000.0},
        "tie_word_embeddings": True,
    },
    "qwen3-0.6b": {
        "model_type": "qwen3",
        "vocab_size": 151_936,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40_960,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0},
        "tie_word_embeddings": True,
    },
    "llama-3.2-1b": {
        "model_type": "llama",
        "vocab_size": 128_256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "max_position_embeddings": 131_072,
        "rope_parameters": _LLAMA_3_ROPE,
        "tie_word_embeddings": True,
    },
    "llama-3.2-3b": {
        "model_type": "llama",
        "vocab_size": 128_256,
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_hidden_layers": 28,
        "num_attention_heads": 24,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 131_072,
        "rope_parameters": _LLAMA_3_ROPE,
        "tie_word_embeddings": True,
    },
    "llama-3.1-8b": {
        "model_type": "llama",
        "vocab_size": 128_256,
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131_072,
        "rope_parameters": {**_LLAMA_3_ROPE, "factor": 8.0},
        "tie_word_embeddings": False,
    },
}


def shape_config(name: str) -> PretrainedConfig:
    """The configuration of a named shape, with no special tokens."""
    from transformers import AutoConfig  # late, so that names can be looked up without it

    settings = dict(SHAPES[name])
    return AutoConfig.for_model(settings.pop("model_type"), **settings, **_NO_SPECIAL)

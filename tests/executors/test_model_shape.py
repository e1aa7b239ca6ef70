"""What is counted from a model's numbers, against transformers' own models and by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from replay.executors.model_shape import ModelShape, context_limit
from replay.executors.torch.shapes import SHAPES

ODD: dict[str, Any] = {  # numbers of which no two are equal, so that none can stand for another
    "vocab_size": 331,
    "hidden_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "max_position_embeddings": 77,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
GROUPED: dict[str, Any] = {"num_key_value_heads": 2, "intermediate_size": 140}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("llama", GROUPED),
        ("llama", {**GROUPED, "attention_bias": True, "mlp_bias": True}),
        ("llama", {**GROUPED, "head_dim": 24}),
        ("mistral", GROUPED),
        ("qwen2", GROUPED),
        ("qwen3", {**GROUPED, "head_dim": 24}),
        ("phi3", GROUPED),
        ("gemma", {**GROUPED, "head_dim": 24}),
        ("gemma2", {**GROUPED, "head_dim": 24}),
        ("gemma3_text", {**GROUPED, "head_dim": 24}),
        ("gpt2", {}),
        ("gpt2", {"n_inner": 200}),
        ("gpt_neox", {"intermediate_size": 140}),
        ("opt", {"ffn_dim": 140, "word_embed_proj_dim": 96}),
        ("starcoder2", GROUPED),
    ],
)
def test_parameters_are_those_of_transformers(kind: str, settings: dict[str, Any], tied: bool) -> None:
    config = AutoConfig.for_model(kind, **ODD, **settings, tie_word_embeddings=tied)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    assert ModelShape.of(config.to_dict()).parameters == model.num_parameters()


# The models' published parameters, and bytes of a token by hand: 2 x layers x KV heads x head size x 2.
@pytest.mark.parametrize(
    ("name", "parameters", "token_bytes"),
    [
        ("smollm2-135m", 134_515_008, 23_040),
        ("qwen3-0.6b", 596_049_920, 114_688),
        ("llama-3.2-1b", 1_235_814_400, 32_768),
        ("llama-3.1-8b", 8_030_261_248, 131_072),
    ],
)
def test_named_shapes_are_counted_without_transformers(name: str, parameters: int, token_bytes: int) -> None:
    shape = ModelShape.of(SHAPES[name])
    assert (shape.parameters, shape.kv_token_bytes(2)) == (parameters, token_bytes)


def test_a_token_of_llama_2_7b_takes_half_a_mebibyte_as_the_article_has_it() -> None:
    config = AutoConfig.for_model("llama")  # its defaults are those of Llama 2 7B
    shape = ModelShape.of(config.to_dict())
    assert shape.parameters == 6_738_415_616
    assert shape.kv_token_bytes(2) == 2 * 32 * 32 * 128 * 2 == 2**19


def test_arithmetic_and_traffic_of_a_step_by_hand() -> None:
    shape = ModelShape(
        layers=2, hidden=8, heads=4, kv_heads=2, head_dim=2, intermediate=16, vocabulary=100, tied=True, gated=True
    )
    layer = 8 * 8 + 2 * 8 * 4 + 8 * 8 + 3 * 8 * 16  # queries, keys and values, output, feed-forward
    assert shape.layer_parameters == 2 * layer == 1152
    assert shape.flops(tokens=3, samples=1, pairs=10) == 2 * (3 * 1152 + 800) + 4 * 10 * 2 * 4 * 2
    token = 2 * 2 * 2 * 2 * 4
    assert shape.traffic(3, 1, 20, weight_itemsize=2, kv_itemsize=4) == (1152 + 800) * 2 + 23 * token
    assert shape.traffic(3, 0, 20, weight_itemsize=2, kv_itemsize=4) == 1152 * 2 + 23 * token


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        ({}, None),
        ({"max_position_embeddings": 8192}, 8192),
        ({"n_positions": 1024}, 1024),
        ({"max_position_embeddings": 8192, "sliding_window": 4096}, 4096),
        ({"max_position_embeddings": 8192, "sliding_window": 4096, "layer_types": ["full_attention"]}, 8192),
        ({"max_position_embeddings": 8192, "attention_chunk_size": 64, "layer_types": ["chunked_attention"]}, 64),
        (
            {
                "max_position_embeddings": 8192,
                "rope_parameters": {"rope_type": "dynamic", "original_max_position_embeddings": 2048},
            },
            2048,
        ),
        ({"max_position_embeddings": 8192, "rope_parameters": {"rope_type": "llama3"}}, 8192),
    ],
)
def test_how_far_attention_is_full(config: dict[str, Any], limit: int | None) -> None:
    assert context_limit(config) == limit

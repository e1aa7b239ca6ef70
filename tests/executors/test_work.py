"""FLOP and bytes of a step: by hand, by their sums, and as torch counts the operations of a real forward pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from replay.executors.model_shape import ModelShape
from replay.executors.torch.models import dummy_model
from replay.executors.torch.probing.accounting import ceilings_key, probe_command, work_of
from replay.executors.torch.shapes import shape_config
from replay.executors.work import Work
from replay.machine import hardware

# 2 layers, 8 wide, 4 heads of 2 over 2 key-value heads, a feed-forward of 16, 32 tokens
SMALL = ModelShape(
    layers=2, hidden=8, heads=4, kv_heads=2, head_dim=2, intermediate=16, vocabulary=32, tied=True, vectors=40
)
WORK = Work(SMALL, weight_itemsize=4, kv_itemsize=2)


def test_a_step_by_hand() -> None:
    # a layer: queries 8x8, keys and values 8x4 each, output 8x8; feed-forward 3 x 8x16
    layer = 64 + 32 + 32 + 64 + 3 * 128
    assert layer == 576
    head = 8 * 32
    # a chunk of 3 tokens at the start of a prompt (1 + 2 + 3 pairs), and a decode over 10 tokens that samples
    flops = 2 * 4 * 2 * layer + 2 * 1 * head + 4 * (6 + 10) * 2 * 4 * 2
    assert flops == 9216 + 512 + 1024
    assert WORK.flops(tokens=4, samples=1, pairs=16) == flops
    # all weights once in 4 bytes; keys and values of 2 heads of 2 numbers in 2 layers and 2 bytes: 32 bytes a token,
    # read for 3 + 10 tokens and written for 4
    assert WORK.kv_bytes == 2 * 2 * 2 * 2 * 2
    assert WORK.traffic(tokens=4, samples=1, context=13) == 4 * (2 * layer + head) + 32 * (13 + 4)
    # a chunk that samples nothing needs no logits
    assert WORK.traffic(tokens=3, samples=0, context=3) == 4 * 2 * layer + 32 * 6


@given(tokens=st.integers(0, 10**6), samples=st.integers(0, 10**4), pairs=st.integers(0, 10**9))
def test_the_constants_add_up_to_the_step(tokens: int, samples: int, pairs: int) -> None:
    flops = WORK.token_flops * tokens + WORK.sample_flops * samples + WORK.pair_flops * pairs
    assert flops == WORK.flops(tokens=tokens, samples=samples, pairs=pairs)
    traffic = WORK.step_bytes + (WORK.sampling_bytes if samples else 0) + WORK.kv_bytes * (pairs + tokens)
    assert traffic == WORK.traffic(tokens=tokens, samples=samples, context=pairs)


def test_it_survives_a_manifest_and_a_fact_that_came_later() -> None:
    facts = json.loads(json.dumps(WORK.facts()))
    assert Work.of(facts) == WORK
    facts["shape"]["something_new"] = 1
    assert Work.of(facts) == WORK


@pytest.mark.parametrize("tokens", [1, 7])
def test_the_count_is_that_of_torch(tokens: int) -> None:
    """What torch counts beside: attention to tokens that come later, and, where transformers makes the angles of the
    rotary embedding by a matrix product, those."""
    config = shape_config("tiny")
    model = dummy_model(config, device=torch.device("cpu"), dtype=torch.float32, seed=0, attention="eager")
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        model(input_ids=torch.arange(tokens)[None], use_cache=False)
    shape = ModelShape.of(config.to_dict())
    rotary = 2 * tokens * shape.head_dim // 2
    all_pairs = shape.flops(tokens, tokens, tokens**2)  # every token with every other: what masks hide is computed
    assert counter.get_total_flops() - all_pairs in (0, rotary)
    causal = shape.flops(tokens, tokens, tokens * (tokens + 1) // 2)
    assert all_pairs - causal == 4 * (tokens * (tokens - 1) // 2) * shape.layers * shape.heads * shape.head_dim


DETAILS = {
    "device": "cpu",
    "device_name": "x86_64",
    "model": "tiny",
    "threads": 3,
    "dtype": "float32",
    "linears": "plain",
    "kv_dtype": "float32",
}


def test_bytes_are_those_of_the_weights_and_of_the_pool_as_they_are_kept() -> None:
    plain = work_of(DETAILS)
    assert plain is not None
    assert (plain.weight_itemsize, plain.kv_itemsize) == (4, 4)
    packed = work_of(DETAILS | {"linears": "fp16", "kv_dtype": "float16"})
    assert packed is not None
    assert (packed.weight_itemsize, packed.kv_itemsize) == (2, 2)
    gpu = work_of(DETAILS | {"dtype": "bfloat16", "kv_dtype": "bfloat16"})
    assert gpu is not None
    assert (gpu.weight_itemsize, gpu.kv_itemsize, gpu.shape) == (2, 2, plain.shape)


def test_a_model_of_another_kind_is_not_counted(tmp_path: Path) -> None:
    experts = {
        "model_type": "mixtral",
        "architectures": ["MixtralForCausalLM"],
        "vocab_size": 64,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": None,
    }
    (tmp_path / "config.json").write_text(json.dumps(experts))
    assert work_of(DETAILS | {"model": str(tmp_path)}) is None
    assert work_of(DETAILS | {"model": "no such model"}) is None


def test_ceilings_are_looked_up_by_processor_and_threads_or_by_gpu() -> None:
    assert ceilings_key(DETAILS) == (hardware()["processor"], 3, "float32")
    gpu = DETAILS | {"device": "cuda:1", "device_name": "A GPU", "dtype": "bfloat16"}
    assert ceilings_key(gpu) == ("A GPU", None, "bfloat16")


def test_what_measures_them_is_told_in_full() -> None:
    assert probe_command(DETAILS) == "replay probe --device cpu --threads 3"
    assert probe_command(DETAILS | {"device": "cuda:1"}) == "replay probe --device cuda:1"

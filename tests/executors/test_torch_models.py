"""Models by name: what is built, what is loaded, and the sentences for what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from greedy import CPU, MODELS, SEED, Driver, reference
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from replay.errors import EngineError, ExperimentError
from replay.executors.torch import build_torch_executor
from replay.executors.torch.attention import TorchPaged, paged_attention
from replay.executors.torch.executor import TorchExecutor
from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.layout import Row, Rows, lay_out
from replay.executors.torch.memory import kv_shape
from replay.executors.torch.models import DRAWN, dummy_model, load_model, max_context
from replay.executors.torch.shapes import SHAPES, shape_config
from replay.request import Request, Workload


def small(kind: str, **settings: Any) -> Any:
    return AutoConfig.for_model(kind, **{**MODELS["llama"], **settings})


# Bytes of keys and values of a token in 16 bits, by hand: 2 x layers x KV heads x head size x 2.
@pytest.mark.parametrize(
    ("name", "parameters", "token_bytes"),
    [
        ("smollm2-135m", 134_515_008, 2 * 30 * 3 * 64 * 2),
        ("smollm2-360m", 361_821_120, 2 * 32 * 5 * 64 * 2),
        ("qwen3-0.6b", 596_049_920, 2 * 28 * 8 * 128 * 2),
        ("llama-3.2-1b", 1_235_814_400, 2 * 16 * 8 * 64 * 2),
        ("llama-3.2-3b", 3_212_749_824, 2 * 28 * 8 * 128 * 2),
        ("llama-3.1-8b", 8_030_261_248, 2 * 32 * 8 * 128 * 2),
    ],
)
def test_named_shapes_have_the_published_sizes(name: str, parameters: int, token_bytes: int) -> None:
    config = shape_config(name)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    assert model.num_parameters() == parameters
    assert kv_shape(config).token_bytes(torch.bfloat16) == token_bytes


def test_equal_seeds_give_equal_weights() -> None:
    first, again, other = (load_model("tiny", device=CPU, dtype=torch.float32, seed=seed) for seed in (3, 3, 4))
    for mine, same, different in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, same)
        assert mine.ndim < 2 or not torch.equal(mine, different)


def test_weights_are_normal_and_norms_are_ones() -> None:
    model = load_model("tiny", device=CPU, dtype=torch.float32)
    assert all((norm == 1).all() for name, norm in model.named_parameters() if "norm" in name)
    for name, matrix in model.named_parameters():
        if matrix.ndim == 2:
            assert float(matrix.std()) == pytest.approx(0.02, rel=0.02), name
            assert abs(float(matrix.mean())) < 5 * 0.02 / matrix.numel() ** 0.5, name


def test_a_large_parameter_repeats_what_was_drawn_in_other_rows() -> None:
    model = dummy_model(small("llama", vocab_size=20_000), device=CPU, dtype=torch.float32, seed=0)
    table = model.get_input_embeddings().weight
    assert table.numel() > DRAWN
    assert torch.equal(table.reshape(-1)[DRAWN:], table.reshape(-1)[: table.numel() - DRAWN])
    assert len(torch.unique(table, dim=0)) == 20_000


def test_weights_from_a_folder_and_its_tokenizer(tmp_path: Path) -> None:
    config = AutoConfig.for_model("llama", **MODELS["llama"])
    dummy_model(config, device=CPU, dtype=torch.float32, seed=SEED, attention="sdpa").save_pretrained(tmp_path)
    words = Tokenizer(WordLevel({"<end>": 0, "the": 1, "cat": 2, "sat": 3, "<unk>": 4}, unk_token="<unk>"))
    words.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>", unk_token="<unk>").save_pretrained(tmp_path)

    executor = build_torch_executor(model=str(tmp_path), device="cpu", blocks=64)
    requests = [Request(0, "0", 0.0, 8, 4), Request(1, "1", 0.0, 2, 4), Request(2, "2", 0.0, 400, 4)]
    executor.prepare(Workload(requests, [4, 4, 4], prompts={0: "the cat sat", 1: "sat the cat"}))
    assert executor.prompt(0) == [1, 2, 3]
    assert requests[0].prompt_tokens == 3  # what there is, not what the trace says
    assert executor.prompt(1) == [3, 1]
    assert requests[1].prompt_tokens == 2
    assert not {0, 4} & set(executor.prompt(2))  # special tokens are not drawn
    assert executor.describe().details["weights"] == str(tmp_path)

    plain = TorchExecutor(
        load_model(str(tmp_path), device=CPU, dtype=torch.float32), name="x", blocks=64, block_size=16
    )
    driver = Driver(plain)
    while rows := driver.unfinished():
        driver.step(dict.fromkeys(rows))
    assert driver.answers() == reference("llama").answers


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("tinny", "there is no model 'tinny': did you mean 'tiny'"),
        ("Llama-3.2-1B", "there is no model 'Llama-3.2-1B': did you mean 'llama-3.2-1b'"),
        ("nobody/nothing", "there is no model 'nobody/nothing' that can be loaded: it is no named shape"),
        ("./nowhere", "there is no folder './nowhere' to load a model from"),
    ],
)
def test_no_such_model(name: str, sentence: str) -> None:
    with pytest.raises(EngineError, match=sentence):
        build_torch_executor(model=name, blocks=8)


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="transformers refuses it"):
        build_torch_executor(model=str(tmp_path), blocks=8)


def test_an_architecture_whose_attention_cannot_be_replaced(tmp_path: Path) -> None:
    settings = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 64}
    AutoModelForCausalLM.from_config(AutoConfig.for_model("falcon", **settings)).save_pretrained(tmp_path)
    with pytest.raises(EngineError, match="cannot be paged"):
        build_torch_executor(model=str(tmp_path), blocks=8)


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        ("gemma2", {"head_dim": 16}, "wants attention with softcap"),
        ("bloom", {}, "called the paged attention 0 times for its 3 layers"),
        ("qwen3_next", {}, "layers of type linear_attention"),
    ],
)
def test_what_cannot_be_paged_is_refused_before_the_first_step(
    kind: str, settings: dict[str, Any], sentence: str
) -> None:
    model = dummy_model(small(kind, **settings), device=CPU, dtype=torch.float32, seed=0)
    with pytest.raises(EngineError, match=sentence):
        TorchExecutor(model, name=kind, blocks=4, block_size=16)


def test_a_model_without_attention_is_refused() -> None:
    with pytest.raises(EngineError, match="a model of type mamba has no attention heads"):
        kv_shape(AutoConfig.for_model("mamba"))


def test_attention_that_gets_no_step_or_other_keys_is_refused() -> None:
    module = torch.nn.Identity()
    keys = torch.zeros(1, 2, 1, 8)
    with pytest.raises(EngineError, match="Identity does not hand its keyword arguments to its attention"):
        paged_attention(module, keys, keys, keys, None)
    cache = KVCache(layers=1, heads=2, head_dim=16, blocks=1, block_size=4, device=CPU, dtype=torch.float32)
    layout = lay_out(Rows.of([Row(np.zeros(1, dtype=np.int32), 0, [0], samples=True)]), None, 4, cache.spare_block)
    with pytest.raises(EngineError, match="keys of 2 heads of 8 numbers where its configuration promises 2 of 16"):
        paged_attention(module, keys, keys, keys, None, paged=TorchPaged(layout, cache, torch.float32))
    wide = torch.zeros(1, 2, 1, 16)
    with pytest.raises(EngineError, match="values of 2 heads of 8 numbers where its configuration promises 2 of 16"):
        paged_attention(module, wide, wide, keys, None, paged=TorchPaged(layout, cache, torch.float32))


@pytest.mark.parametrize(
    ("kind", "settings", "longest"),
    [
        ("llama", {}, 256),
        ("mistral", {"sliding_window": 128}, 128),
        ("mistral", {"sliding_window": None}, 256),
        ("qwen2", {"use_sliding_window": False, "sliding_window": 64}, 256),
        ("llama", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, 256),
    ],
)
def test_the_longest_context_is_where_full_attention_ends(kind: str, settings: dict[str, Any], longest: int) -> None:
    assert max_context(dummy_model(small(kind, **settings), device=CPU, dtype=torch.float32, seed=0)) == longest


def test_devices_and_number_types() -> None:
    with pytest.raises(ExperimentError, match=r"engine.device = 'gpu' is no device: write 'auto', 'cpu', 'cuda'"):
        build_torch_executor(device="gpu", blocks=8)
    with pytest.raises(EngineError, match=r"engine.device = 'cuda:99', but torch finds \d+ CUDA devices"):
        build_torch_executor(device="cuda:99", blocks=8)
    with pytest.raises(ExperimentError, match=r"engine.dtype = 'fp16' is no number type: did you mean 'float16'"):
        build_torch_executor(device="cpu", dtype="fp16", blocks=8)


def test_a_pool_that_does_not_fit_says_the_arithmetic() -> None:
    # tiny in float32: 2 x 6 layers x 2 heads x 32 numbers x 4 bytes = 3072 bytes a token.
    with pytest.raises(
        EngineError, match=r"10000000 \+ 1 blocks x 16 tokens x 3072 bytes .* at most \d+ blocks fit"
    ) as info:
        build_torch_executor(device="cpu", blocks=10_000_000)
    assert "need 457.76 GiB" in str(info.value)


def test_every_shape_names_its_kind() -> None:
    assert "tiny" in SHAPES
    assert all(shape_config(name).model_type == shape["model_type"] for name, shape in SHAPES.items())

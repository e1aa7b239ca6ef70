"""Linears of every kind against float64, in every batch size, in models with a tied head, and where they cannot be."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from greedy import MODELS
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import AutoConfig

from replay.errors import EngineError
from replay.executors.torch.attention import IMPLEMENTATION
from replay.executors.torch.linears import KINDS, FBGEMMLinear, _fault, choose, pack, replace_linears, usable
from replay.executors.torch.models import dummy_model
from replay.executors.torch.native.library import load

CPU = torch.device("cpu")
HERE = [kind for kind in KINDS if usable(kind, CPU, torch.float32) is None]
PACKED = [kind for kind in HERE if kind != "plain"]
WAYS = [*HERE, *(["fbgemm"] if "fbgemm" in torch.backends.quantized.supported_engines else [])]
SAME_BITS = [kind for kind in ("onednn", "native") if kind in HERE]


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def small_model(name: str, attention: str = IMPLEMENTATION, **more: Any) -> Any:
    config = AutoConfig.for_model(name, **{**MODELS[name], **more})
    return dummy_model(config, device=CPU, dtype=torch.float32, seed=0, attention=attention)


def build(kind: str, weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Module:
    """As `pack`; "fbgemm" is what "fp16" is where there is no compiled code."""
    return FBGEMMLinear(weight, bias) if kind == "fbgemm" else pack(weight, bias, kind)


@pytest.mark.parametrize("kind", WAYS)
@settings(deadline=None, max_examples=30)
@given(
    shape=st.tuples(st.integers(1, 70), st.integers(1, 200)),
    rows=st.sampled_from([(1,), (2,), (17,), (1, 1), (2, 3), (1, 5)]),
    biased=st.booleans(),
)
def test_the_product_is_that_of_float64(kind: str, shape: tuple[int, int], rows: tuple[int, ...], biased: bool) -> None:
    weight, bias, x = drawn(*shape), drawn(shape[0], seed=1) if biased else None, drawn(*rows, shape[1], seed=2)
    held = weight.half() if kind in ("fp16", "fbgemm") else weight
    expected = x.double() @ held.double().T + (0.0 if bias is None else bias.double())
    with torch.inference_mode():
        result = build(kind, weight, bias)(x)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result.double(), expected, rtol=1e-5, atol=1e-5 * shape[1] ** 0.5)


@pytest.mark.parametrize("kind", WAYS)
def test_packed_weights_do_not_follow_the_original(kind: str) -> None:
    weight, bias, x = drawn(5, 4), drawn(5), drawn(3, 4)
    with torch.inference_mode():
        linear = build(kind, weight.T.contiguous().T, bias)  # strided otherwise than usual
        before = linear(x).clone()
        if kind != "plain":
            weight.zero_()
            bias.zero_()
        assert torch.equal(linear(x), before)
        assert torch.equal(linear(drawn(3, 8)[:, ::2].contiguous()), linear(drawn(3, 8)[:, ::2]))


@pytest.mark.parametrize("kind", SAME_BITS)
@pytest.mark.parametrize("shape", [(96, 64), (576, 1536), (1024, 1025), (40, 2500), (5, 3)])
def test_a_row_has_the_same_bits_in_every_batch(kind: str, shape: tuple[int, int]) -> None:
    linear, x = pack(drawn(*shape), drawn(shape[0]), kind), drawn(130, shape[1])
    with torch.inference_mode():
        whole = linear(x)
        for rows in [*range(1, 34), 47, 48, 63, 64, 65, 127, 128, 129]:
            assert torch.equal(linear(x[:rows]), whole[:rows]), rows
        assert torch.equal(linear(x[77]), whole[77])  # wherever it stands
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            assert torch.equal(linear(x), whole)
        finally:
            torch.set_num_threads(before)


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize(("name", "linears"), [("llama", 3 * 7 + 1), ("gpt2", 3 * 4 + 1), ("qwen2", 2 * 7 + 1)])
def test_a_model_computes_the_same_with_packed_weights(kind: str, name: str, linears: int) -> None:
    model, ids = small_model(name, "sdpa"), torch.arange(40)[None] % 512
    with torch.inference_mode():
        for parameter in model.parameters():
            parameter.copy_(parameter.half())  # so that float16 holds them exactly
        before = model(ids).logits
        assert replace_linears(model, kind) == linears
        after = model(ids).logits
    torch.testing.assert_close(after, before, rtol=0, atol=1e-5 * float(before.abs().max()))
    assert not any(type(module) is nn.Linear for module in model.modules())


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("tied", [True, False])
def test_originals_are_let_go_and_a_tied_embedding_stays(kind: str, tied: bool) -> None:
    model = small_model("llama", tie_word_embeddings=tied)
    embedding = model.get_input_embeddings().weight
    assert (model.lm_head.weight is embedding) == tied
    kept = embedding.clone()
    originals = [weakref.ref(module) for module in model.modules() if isinstance(module, nn.Linear)]
    replace_linears(model, kind)
    assert len(originals) == 22
    assert not any(original() for original in originals)
    assert torch.equal(model.get_input_embeddings().weight, kept)
    matrices = [parameter for parameter in model.parameters() if parameter.ndim == 2]
    assert [id(parameter) for parameter in matrices] == [id(embedding)]


def test_plain_linears_are_left_alone() -> None:
    model = small_model("gpt2")
    before = list(model.modules())
    assert replace_linears(model, "plain") == 0
    assert [id(module) for module in model.modules()] == [id(module) for module in before]


def test_what_auto_takes() -> None:
    assert choose("auto", CPU, torch.float32) == [*(k for k in ("native", "onednn") if k in HERE), "plain"][0]
    assert choose("auto", CPU, torch.bfloat16) == "plain"
    assert choose("auto", torch.device("cuda"), torch.float32) == "plain"
    assert [choose(kind, CPU, torch.float32) for kind in HERE] == HERE


@pytest.mark.parametrize(
    ("kind", "device", "dtype", "sentence"),
    [
        (
            "onednn",
            "cpu",
            torch.bfloat16,
            "'onednn' cannot be used: they compute in float32, and the model is in bfloa",
        ),
        (
            "fp16",
            "cuda",
            torch.float32,
            "'fp16' cannot be used: packed weights are for a CPU, and the model is on cuda",
        ),
        ("one-dnn", "cpu", torch.float32, "'one-dnn' is no kind of linears: did you mean 'onednn'"),
        ("int8", "cpu", torch.float32, "'int8' is no kind of linears: "),
    ],
)
def test_a_kind_that_is_not_usable_is_refused(kind: str, device: str, dtype: torch.dtype, sentence: str) -> None:
    with pytest.raises(EngineError, match=f"engine.linears = {sentence}"):
        choose(kind, torch.device(device), dtype)
    with pytest.raises(EngineError, match=r"engine\.linears"):
        pack(torch.zeros(2, 2, dtype=torch.int32), None, "fp16")


def test_without_a_compiler_there_is_still_something(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    load.cache_clear()
    _fault.cache_clear()
    try:
        with pytest.raises(EngineError, match="'native' cannot be used: there is no compiled code: no C"):
            choose("native", CPU, torch.float32)
        assert choose("auto", CPU, torch.float32) == ("onednn" if "onednn" in HERE else "plain")
        if "fbgemm" in WAYS:
            assert type(pack(drawn(3, 2), None, "fp16")) is FBGEMMLinear
    finally:
        load.cache_clear()
        _fault.cache_clear()

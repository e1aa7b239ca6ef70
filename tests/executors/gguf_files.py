"""Small GGUF files as llama.cpp's converter would write them: a random Llama with a byte-level tokenizer."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import gguf
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

LAYERS, HEADS, KV_HEADS = 2, 4, 2
END = "<|end|>"
TEMPLATE = "{% for message in messages %}<{{ message['content'] }}>{% endfor %}"
NAMES = {  # llama.cpp's names of what transformers calls so
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def byte_letters() -> list[str]:
    """The 256 letters that stand for bytes in GPT-2's vocabularies: printable ones for themselves, the rest moved."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + moved.index(byte)) for byte in range(256)]


VOCABULARY = [END, *byte_letters(), "th", "the"]
MERGES = ["t h", "th e"]


def random_llama() -> PreTrainedModel:
    config = AutoConfig.for_model(
        "llama",
        vocab_size=len(VOCABULARY),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=128,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        initializer_range=0.2,
    )
    torch.manual_seed(5)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def write_gguf(
    file: Path,
    model: PreTrainedModel,
    *,
    architecture: str = "llama",
    licence: str | None = "apache-2.0",
    template: str | None = TEMPLATE,
    without: Collection[str] = (),
    parts: int = 1,
    stretched: bool = False,
    tokenizer: bool = True,
) -> Path:
    """`model` as a GGUF file; `without` names tensors that are left out."""
    config = model.config
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_name("Tiny")
    if licence is not None:
        writer.add_license(licence)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(config.vocab_size)
    if stretched:
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    if parts > 1:
        writer.add_uint16("split.count", parts)
    if tokenizer:
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list(VOCABULARY)
        writer.add_token_types([gguf.TokenType.CONTROL] + [gguf.TokenType.NORMAL] * (len(VOCABULARY) - 1))
        writer.add_token_merges(MERGES)
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(0)
        writer.add_add_bos_token(False)
        if template is not None:
            writer.add_chat_template(template)
    for name, tensor in tensors(model).items():
        if name not in without:
            writer.add_tensor(name, tensor.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def tensors(model: PreTrainedModel) -> dict[str, Tensor]:
    """The weights by llama.cpp's names; queries and keys in its order of rotary pairs."""
    found = {}
    for name, tensor in model.state_dict().items():
        if name.startswith("model.layers."):
            _, _, layer, *matrix, _ = name.split(".")
            short = NAMES[".".join(matrix)]
            heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(short)
            found[f"blk.{layer}.{short}.weight"] = tensor if heads is None else interleaved(tensor, heads)
    state = model.state_dict()
    return {
        "token_embd.weight": state["model.embed_tokens.weight"],
        "output_norm.weight": state["model.norm.weight"],
        **found,
    }


def interleaved(matrix: Tensor, heads: int) -> Tensor:
    """Rows of each head from halves (transformers) to neighbouring pairs (llama.cpp)."""
    return matrix.view(heads, 2, -1, matrix.shape[1]).transpose(1, 2).reshape(matrix.shape)

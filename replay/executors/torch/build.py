"""From the settings of an engine to a torch executor: the device, the number type, the model and its tokenizer.

It knows names and what they stand for; what is built from them is the executor's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import AutoTokenizer, PreTrainedModel

from replay.errors import EngineError, ExperimentError
from replay.executors.model_shape import ModelShape
from replay.executors.pool_size import GIB, size_pool
from replay.executors.torch.computing import Computing, Sampling
from replay.executors.torch.executor import TorchExecutor
from replay.executors.torch.memory import device_memory, kv_shape
from replay.executors.torch.models import load_model
from replay.executors.torch.shapes import SHAPES
from replay.registry import nearest

THREADS = torch.get_num_threads()  # what an engine gets that asks for no number, whatever the one before asked for
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def build(
    *,
    name: str,
    device: str,
    dtype: str,
    threads: int | None,
    blocks: int | None,
    memory_utilization: float | None,
    step: tuple[int, int],
    block_size: int,
    seed: int,
    linears: str,
    attention: str,
    kv_dtype: str,
    fused: bool,
    cuda_graphs: bool,
    overlap: bool | None,
    swap_gb: float,
    temperature: float,
    top_k: int | None,
    top_p: float,
    stop: str,
) -> TorchExecutor:
    """An executor for a model by name; see `build_torch_executor`."""
    torch.set_num_threads(threads or THREADS)
    place = find_device(device)
    if place.type == "cuda":  # kernels are launched, and events recorded, on the process's current device
        torch.cuda.set_device(place.index or 0)
    numbers = find_dtype(dtype, place)
    kept = None if kv_dtype == "auto" else find_dtype(kv_dtype, place)
    memory = None if memory_utilization is None else device_memory(place)
    model = load_model(name, device=place, dtype=numbers, seed=seed)
    if memory_utilization is not None and memory is not None:
        assert blocks is None, "a pool has a number of blocks, or a share of the memory"
        blocks = size_pool(
            ModelShape.of(model.config.get_text_config().to_dict()),
            memory=memory[0],
            taken=memory[1],
            utilization=memory_utilization,
            weights=sum(each.numel() * each.element_size() for each in (*model.parameters(), *model.buffers())),
            itemsize=numbers.itemsize,
            kv_itemsize=(kept or numbers).itemsize,
            block_size=block_size,
            step=step,
            swap=int(swap_gb * GIB) if place.type == "cpu" else 0,
        ).require()
    assert blocks is not None, "a pool has a number of blocks, or a share of the memory"
    block_bytes = block_size * kv_shape(model.config).token_bytes(kept or numbers)
    computing = Computing(
        linears=linears,
        attention=attention,
        kv_dtype=kept,
        fused=fused,
        graphs=cuda_graphs,
        overlap=overlap,
        host_blocks=int(swap_gb * GIB) // block_bytes,
        sampling=Sampling(temperature, top_k, top_p),
        end_ids=_end_ids(model, name) if stop == "eos" else frozenset(),
    )
    if name in SHAPES:
        return TorchExecutor(model, name=name, blocks=blocks, block_size=block_size, seed=seed, computing=computing)
    tokenizer = _tokenizer(name)
    return TorchExecutor(
        model,
        name=name,
        blocks=blocks,
        block_size=block_size,
        seed=seed,
        weights=name,
        tokenize=None if tokenizer is None else _ids(tokenizer),
        special=() if tokenizer is None else tokenizer.all_special_ids,
        computing=computing,
    )


def find_device(name: str) -> torch.device:
    """The device of this name; "auto" is a CUDA device where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ExperimentError(f"engine.device = {name!r} is no device: write 'auto', 'cpu', 'cuda' or 'cuda:N'")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise EngineError(
            f"engine.device = {name!r}, but torch finds {torch.cuda.device_count()} CUDA devices here; "
            "'auto' takes what there is"
        )
    return device


def find_dtype(name: str, device: torch.device) -> torch.dtype:
    """The number type of this name; "auto" is bfloat16 on CUDA, else float32."""
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if name not in DTYPES:
        raise ExperimentError(f"engine.dtype = {name!r} is no number type: {nearest(name, ['auto', *DTYPES])}")
    return DTYPES[name]


def _end_ids(model: PreTrainedModel, name: str) -> frozenset[int]:
    """The tokens that end an answer of this model; EngineError where it has none."""
    for config in (getattr(model, "generation_config", None), model.config.get_text_config()):
        ids = getattr(config, "eos_token_id", None)
        if ids is not None:
            return frozenset(ids if isinstance(ids, list) else [ids])
    raise EngineError(
        f"engine.stop = 'eos' needs a model with an end token, and {name!r} has none; with 'length' answers have the "
        "lengths of the trace"
    )


def _tokenizer(name: str) -> Any:
    """The tokenizer beside the weights, or None where there is none."""
    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError, ImportError):
        return None


def _ids(tokenizer: Any) -> Callable[[str], Sequence[int]]:
    def tokenize(text: str) -> Sequence[int]:
        ids: list[int] = tokenizer(text)["input_ids"]
        return ids

    return tokenize

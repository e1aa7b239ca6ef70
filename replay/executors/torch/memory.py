"""What a token takes in the KV pool, and whether the pool fits into the memory that is left.

It knows a model by its configuration alone.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PretrainedConfig

from replay.errors import EngineError
from replay.executors.pool_size import GIB


@dataclass(slots=True, frozen=True)
class KVShape:
    """What one token leaves in the cache: keys and values of `heads` heads in each of `layers` layers."""

    layers: int
    heads: int
    head_dim: int

    def token_bytes(self, dtype: torch.dtype) -> int:
        """Bytes of one token's keys and values, in all layers."""
        return 2 * self.layers * self.heads * self.head_dim * dtype.itemsize


def kv_shape(config: PretrainedConfig) -> KVShape:
    """The shape of the keys and values of a model with this configuration; EngineError when it has no attention."""
    config = config.get_text_config()
    heads = getattr(config, "num_attention_heads", None)
    if not heads:
        raise EngineError(f"a model of type {config.model_type} has no attention heads, so it has no keys to page")
    return KVShape(
        layers=config.num_hidden_layers,
        heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
    )


def check_kv_fits(shape: KVShape, *, blocks: int, block_size: int, device: torch.device, dtype: torch.dtype) -> None:
    """Raise EngineError, with the arithmetic, when `blocks` blocks (and the spare one) do not fit on `device`."""
    _let_go(device)
    available = available_bytes(device)
    block_bytes = block_size * shape.token_bytes(dtype)
    needed = (blocks + 1) * block_bytes
    if available is None or needed <= available:
        return
    raise EngineError(
        f"kv_blocks = {blocks} need {needed / GIB:.2f} GiB, but {device} has {available / GIB:.2f} GiB left beside the "
        f"weights: {blocks} + 1 blocks x {block_size} tokens x {shape.token_bytes(dtype)} bytes (keys and values x "
        f"{shape.layers} layers x {shape.heads} heads x {shape.head_dim} numbers x {dtype.itemsize} bytes); "
        f"at most {max(available // block_bytes - 1, 0)} blocks fit"
    )


def check_host_fits(
    shape: KVShape, *, host_blocks: int, blocks: int, block_size: int, device: torch.device, dtype: torch.dtype
) -> None:
    """Raise EngineError when swap space of `host_blocks` blocks is more than the host has left.

    Where `device` is the CPU, the pool of `blocks` blocks takes of the same memory.
    """
    available = available_bytes(torch.device("cpu"))
    block_bytes = block_size * shape.token_bytes(dtype)
    pool = (blocks + 1) * block_bytes if device.type == "cpu" else 0
    needed = host_blocks * block_bytes
    if available is None or pool + needed <= available:
        return
    beside = f" for it and the KV pool of {pool / GIB:.2f} GiB" if pool else ""
    raise EngineError(
        f"engine.swap_gb asks for {needed / GIB:.2f} GiB of host memory, which has {available / GIB:.2f} GiB left"
        f"{beside}; give it less"
    )


def device_memory(device: torch.device) -> tuple[int, int]:
    """Bytes of a device that a share is taken of, and how many of them are in use already, before anything is loaded.

    On CUDA: all there is, with what this and other processes hold. On the CPU: what is available now, none of it in
    use. Raises EngineError where that cannot be found out.
    """
    _let_go(device)
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return int(total), int(total - free)
    available = available_bytes(device)
    if available is None:
        raise EngineError(f"how much memory {device} has cannot be found out here; give engine.kv_blocks instead")
    return available, 0


def _let_go(device: torch.device) -> None:
    """Give back what an engine held that nobody has any more: PyTorch would keep it, and the device look full."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def available_bytes(device: torch.device) -> int | None:
    """Bytes that can still be allocated on a device; None where that cannot be found out."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free)
    limits = [_meminfo(), _control_group()]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


def _meminfo() -> int | None:
    """What Linux holds to be available without swapping."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _control_group() -> int | None:
    """What a container's limit leaves (cgroup v2)."""
    root = Path("/sys/fs/cgroup")
    try:
        limit = (root / "memory.max").read_text().strip()
        return None if limit == "max" else int(limit) - int((root / "memory.current").read_text())
    except (OSError, ValueError):
        return None

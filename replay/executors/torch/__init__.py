"""The torch executor: real prefill and decode over a paged KV pool. torch is imported only when one is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replay.executors.torch.executor import TorchExecutor


def build_torch_executor(
    *,
    model: str = "tiny",
    device: str = "auto",
    dtype: str = "auto",
    threads: int | None = None,
    blocks: int | None = None,
    memory_utilization: float | None = None,
    step: tuple[int, int] = (2048, 256),
    block_size: int = 16,
    seed: int = 0,
    linears: str = "auto",
    attention: str = "auto",
    kv_dtype: str = "auto",
    fused: bool = True,
    cuda_graphs: bool = True,
    overlap: bool | None = None,
    swap_gb: float = 0,
    temperature: float = 0,
    top_k: int | None = None,
    top_p: float = 1,
    stop: str = "length",
) -> TorchExecutor:
    """An executor for a named shape with dummy weights, or for real weights by folder or hub name.

    `device` is "cpu", "cuda", "cuda:1" or "auto" (a CUDA device if there is one), `dtype` "float32", "bfloat16",
    "float16" or "auto" (bfloat16 on CUDA, else float32). `threads` is set for the whole process; None: torch's own.
    `linears`, `attention` and `kv_dtype` (of the pool) are names as in an experiment, `swap_gb` GiB of host memory for
    requests that are swapped out; `overlap` None hands a step over before the one before is back on CUDA alone.
    The pool has `blocks` blocks, or as many as fit into `memory_utilization` of the device's memory beside the weights
    and what a largest `step` needs: its tokens, and the sampled ones among them. One of the two must be given.
    A token is the likeliest at `temperature` 0, else drawn among the `top_k` likeliest within `top_p`; `stop` "eos"
    ends an answer at the model's own end token, "length" never.
    Raises EngineError when the model, the device or the memory is not there, ExperimentError for names that are none.
    """
    from replay.executors.torch.build import build

    return build(
        name=model,
        device=device,
        dtype=dtype,
        threads=threads,
        blocks=blocks,
        memory_utilization=memory_utilization,
        step=step,
        block_size=block_size,
        seed=seed,
        linears=linears,
        attention=attention,
        kv_dtype=kv_dtype,
        fused=fused,
        cuda_graphs=cuda_graphs,
        overlap=overlap,
        swap_gb=swap_gb,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        stop=stop,
    )

"""The sections of an experiment whose settings are the same for everybody: engine, goals, and what stands above them.

Strict: an unknown key is refused, and no text becomes a number. What policies, modes and predictors take is theirs.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from replay.executors.interface import CostModel
from replay.scheduler import Limits

STRICT = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Cost(BaseModel):
    """What a simulated step takes: so long in any case, and so much for each token of each kind (milliseconds)."""

    model_config = STRICT

    fixed_ms: float = Field(15.0, gt=0)
    prefill_ms: float = Field(0.25, ge=0)
    decode_ms: float = Field(0.2, ge=0)
    context_ms: float = Field(0.0012, ge=0)
    swap_ms: float = Field(0.1, ge=0)  # for each KV block copied to host memory or back

    def model(self) -> CostModel:
        """The same in seconds."""
        milliseconds = (self.fixed_ms, self.prefill_ms, self.decode_ms, self.context_ms, self.swap_ms)
        return CostModel(*(value / 1000 for value in milliseconds))


TORCH_ONLY = {
    "model", "device", "dtype", "threads", "memory_utilization", "linears", "attention", "kv_dtype", "fused",
    "cuda_graphs", "overlap", "temperature", "top_k", "top_p", "stop",
}  # fmt: skip


class Engine(BaseModel):
    """What computes the steps, how large its KV pool is, and how many may wait for it."""

    model_config = STRICT

    kind: Literal["torch", "simulated"] = "torch"
    model: str = "tiny"
    device: str = "auto"
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    threads: int | None = Field(None, ge=1)
    block_size: int = Field(16, ge=1)
    kv_blocks: int = Field(1024, ge=1)
    memory_utilization: float | None = Field(None, gt=0, le=1)  # share of the device's memory; in place of kv_blocks
    swap_gb: float = Field(0, ge=0)  # host memory (GiB) for requests that are swapped out
    prefix_cache: bool = False
    linears: Literal["auto", "plain", "onednn", "native", "fp16"] = "auto"
    attention: Literal["auto", "torch", "native", "triton"] = "auto"
    kv_dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    fused: bool = True  # a straight decoder in place of the model's modules, where its like is known
    cuda_graphs: bool = True  # decode steps as CUDA graphs
    overlap: bool | None = None  # whether a step is planned while the one before is computed; unset: on CUDA
    temperature: float = Field(0, ge=0)  # 0: greedy
    top_k: int | None = Field(None, ge=1, le=256)  # more candidates than 256 are never drawn from
    top_p: float = Field(1, gt=0, le=1)
    stop: Literal["length", "eos"] = (
        "length"  # where an answer ends: at the trace's length, or sooner if the model says so
    )
    price_per_hour: float | None = Field(None, gt=0)
    max_waiting: int = Field(1024, ge=1)
    queue_timeout_s: float | None = Field(None, gt=0)
    timeout_s: float | None = Field(None, gt=0)
    cost: Cost = Cost()

    @property
    def blocks(self) -> int | None:
        """Blocks of its KV pool; None where a share of the memory decides, once the engine is built."""
        return self.kv_blocks if self.memory_utilization is None or self.kind == "simulated" else None

    @property
    def limits(self) -> Limits:
        return Limits(self.max_waiting, self.queue_timeout_s, self.timeout_s)

    def unused(self) -> list[str]:
        """Settings that were given and that this kind of engine does not look at."""
        others = {"torch": {"cost"}, "simulated": TORCH_ONLY}[self.kind]
        if self.kind == "simulated" and self.swap_gb:
            others = others - {"model", "dtype", "kv_dtype"}  # they say how many blocks the host's memory holds
        return sorted(others & self.model_fields_set)


class Goals(BaseModel):
    """What makes a request good: it meets every goal that is set."""

    model_config = STRICT

    ttft_ms: float | None = Field(None, gt=0)
    tpot_ms: float | None = Field(None, gt=0)
    e2e_ms: float | None = Field(None, gt=0)
    reading_tokens_per_s: float | None = Field(None, gt=0)  # for the quality of experience alone


class Service(BaseModel):
    """What a token of each kind counts in the service that a user receives, and how long a window of it is."""

    model_config = STRICT

    prompt: float = Field(1.0, ge=0)
    output: float = Field(2.0, ge=0)
    window_s: float | None = Field(None, gt=0)  # unset: 60, or a tenth of a trace's time where that is less


class Top(BaseModel):
    """The keys of an experiment file. The sections are validated by whoever knows them."""

    model_config = STRICT

    name: str | None = Field(None, min_length=1)
    traces: list[str] = Field(min_length=1)
    transforms: list[dict[str, Any]] = []
    loads: list[Annotated[float, Field(gt=0)]] = []  # each trace at so many times its mean rate, side by side
    without_users: list[str] = []  # each trace besides without these users, to see what they cost the others
    repeats: int = Field(1, ge=1)
    seed: int = Field(0, ge=0)
    open_loop: bool = False  # every turn of a session is due at its arrival, whatever became of the turn before
    priority_order: Literal["larger-first", "smaller-first"] = "larger-first"
    lag_limit_ms: float = Field(5.0, gt=0)
    length_bins: list[int] | None = None
    engine: dict[str, Any] = {}
    modes: dict[str, Any] | None = None
    policies: Any = None  # a table, or "all"
    lengths: dict[str, Any] = {}
    goals: dict[str, Any] = {}
    service: dict[str, Any] = {}

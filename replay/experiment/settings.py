"""The sections of an experiment whose settings are the same for everybody: engine, goals, and what stands above them.

Strict: an unknown key is refused, and no text becomes a number. What policies, modes and predictors take is theirs.
Each key says what it means, and where it is unset by default an example of a value: `replay keys` and the reference
show both.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from replay.executors.interface import CostModel
from replay.scheduler import Limits

STRICT = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Cost(BaseModel):
    """What a simulated step takes: so long in any case, and so much for each token of each kind (milliseconds)."""

    model_config = STRICT

    fixed_ms: float = Field(15.0, gt=0, description="milliseconds of any step, whatever it computes")
    prefill_ms: float = Field(0.25, ge=0, description="milliseconds for each token of a prompt")
    decode_ms: float = Field(0.2, ge=0, description="milliseconds for each request that decodes")
    context_ms: float = Field(
        0.0012, ge=0, description="milliseconds for each token that a request of the step attends to"
    )
    swap_ms: float = Field(0.1, ge=0, description="milliseconds for each KV block copied to host memory or back")

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

    kind: Literal["torch", "simulated"] = Field(
        "torch", description="what computes steps: a model on this machine, or a cost model on a virtual clock"
    )
    model: str = Field(
        "tiny",
        description="a named shape with dummy weights, a folder with a model, or a hub name such as owner/name",
    )
    device: str = Field("auto", description='"cpu", "cuda" or "cuda:N"; auto: a CUDA device if there is one')
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = Field(
        "auto", description="number type of the weights; auto: bfloat16 on CUDA, else float32"
    )
    threads: int | None = Field(None, ge=1, examples=[1], description="threads of a CPU; unset: as many as torch likes")
    block_size: int = Field(16, ge=1, description="tokens in one KV block")
    kv_blocks: int = Field(1024, ge=1, description="blocks of the KV pool")
    memory_utilization: float | None = Field(
        None,
        gt=0,
        le=1,
        examples=[0.9],
        description="share of the device's memory that weights, workspace and KV pool take, in place of kv_blocks",
    )
    swap_gb: float = Field(
        0,
        ge=0,
        description="GiB of host memory for the blocks of evicted requests, copied back in place of being computed "
        "again; a simulated engine counts the bytes of its model and dtype",
    )
    prefix_cache: bool = Field(
        False, description="whether prompts that begin alike share the KV blocks of their beginning, in continuous mode"
    )
    linears: Literal["auto", "plain", "onednn", "native", "fp16"] = Field(
        "auto", description="how the model's matrix products are computed; auto: the fastest that keeps a row's bits"
    )
    attention: Literal["auto", "torch", "native", "triton"] = Field(
        "auto", description="how attention is computed; auto: the fastest that there is"
    )
    kv_dtype: Literal["auto", "float32", "float16", "bfloat16"] = Field(
        "auto", description="number type of keys and values in the pool; auto: as the weights"
    )
    fused: bool = Field(
        True, description="whether a straight path takes the place of the model's own modules, where its like is known"
    )
    cuda_graphs: bool = Field(True, description="whether decode steps are replayed as captured CUDA graphs")
    overlap: bool | None = Field(
        None,
        examples=[True],
        description="whether a step is planned while the one before is computed; unset: on CUDA",
    )
    temperature: float = Field(0, ge=0, description="how evenly tokens are drawn; 0: the likeliest is taken")
    top_k: int | None = Field(  # more candidates than 256 are never drawn from
        None, ge=1, le=256, examples=[40], description="how many of the likeliest tokens one is drawn from; unset: 256"
    )
    top_p: float = Field(
        1, gt=0, le=1, description="share of the probability that the tokens drawn from make up, the likeliest first"
    )
    stop: Literal["length", "eos"] = Field(
        "length", description="where an answer ends: at the trace's length, or sooner if the model says so"
    )
    price_per_hour: float | None = Field(
        None,
        gt=0,
        examples=[2.5],
        description="of the machine, in any currency: the report says what a million output tokens cost",
    )
    max_waiting: int = Field(1024, ge=1, description="requests that may wait at once; more are rejected")
    queue_timeout_s: float | None = Field(
        None,
        gt=0,
        examples=[30.0],
        description="seconds from when a request was due to its admission; later it is timed out",
    )
    timeout_s: float | None = Field(
        None,
        gt=0,
        examples=[120.0],
        description="seconds from when a request was due to the end of its answer; later it is timed out",
    )
    cost: Cost = Field(Cost(), description="what a simulated step takes; a real run prints its own")

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

    ttft_ms: float | None = Field(
        None, gt=0, examples=[500.0], description="milliseconds from when a request was due to its first token, at most"
    )
    tpot_ms: float | None = Field(
        None, gt=0, examples=[50.0], description="milliseconds for each token after the first, on average, at most"
    )
    e2e_ms: float | None = Field(
        None,
        gt=0,
        examples=[20_000.0],
        description="milliseconds from when a request was due to the end of its answer, at most",
    )
    reading_tokens_per_s: float | None = Field(
        None,
        gt=0,
        examples=[10.0],
        description="tokens that a reader reads in a second: no goal, but what qoe goes by; needs ttft_ms",
    )


class Service(BaseModel):
    """What a token of each kind counts in the service that a user receives, and how long a window of it is."""

    model_config = STRICT

    prompt: float = Field(1.0, ge=0, description="what a token of a prompt counts")
    output: float = Field(2.0, ge=0, description="what a token of an answer counts")
    window_s: float | None = Field(
        None,
        gt=0,
        examples=[10.0],
        description="seconds of one window; unset: 60, or a tenth of a trace's time where that is less",
    )


class Top(BaseModel):
    """The keys above the tables of an experiment, and the tables, which are validated by whoever knows them."""

    model_config = STRICT

    name: str | None = Field(
        None, min_length=1, examples=["busy-quarter"], description="what the run is called; unset: as the file"
    )
    traces: list[str] = Field(
        min_length=1,
        examples=[["traces/sample.parquet"]],
        description="trace files or folders of them, beside the experiment or in the current folder",
    )
    transforms: list[dict[str, Any]] = Field(
        [], examples=[[{"limit": 50}]], description="what is done to each trace first, in this order"
    )
    loads: list[Annotated[float, Field(gt=0)]] = Field(
        [], examples=[[0.5, 1.0, 2.0]], description="each trace at so many times its mean rate, side by side"
    )
    without_users: list[str] = Field(
        [], examples=[["ana"]], description="each trace besides without these users, to see what they cost the others"
    )
    repeats: int = Field(1, ge=1, description="times that each cell is replayed: how much figures vary from run to run")
    noise_floor: bool = Field(
        False,
        description="fifo, or the first policy, once more in every mode and setting: what differs between two runs of "
        "one cell is noise",
    )
    seed: int = Field(0, ge=0, description="what dummy weights, prompts and all chance in a replay follow from")
    open_loop: bool = Field(
        False,
        description="whether every turn of a session is due at its arrival, whatever became of the turn before",
    )
    priority_order: Literal["larger-first", "smaller-first"] = Field(
        "larger-first", description="which priorities of a trace are the more urgent"
    )
    lag_limit_ms: float = Field(
        5.0, gt=0, description="milliseconds that arrivals may be taken in late, p99, before a cell is marked invalid"
    )
    length_bins: list[Annotated[int, Field(ge=1)]] | None = Field(
        None,
        examples=[[32, 128, 512]],
        description="output lengths, in tokens, that end the bins of the report; unset: the quartiles of each trace",
    )
    engine: dict[str, Any] = Field({}, description="what computes steps")
    modes: dict[str, Any] | None = Field(None, description="batching modes by name; unset: all")
    policies: Any = Field(None, description='policies by name, or "all"; unset: fifo, sjf, priority, fair and hybrid')
    lengths: dict[str, Any] = Field({}, description="what policies may know of output lengths")
    goals: dict[str, Any] = Field({}, description="what makes a request good")
    service: dict[str, Any] = Field({}, description="what counts as service that a user receives")

    @field_validator("length_bins")
    @classmethod
    def _rising(cls, bins: list[int] | None) -> list[int] | None:
        if bins is not None and bins != sorted(set(bins)):
            raise ValueError("each bin must end later than the one before, as in [32, 128, 512]")
        return bins

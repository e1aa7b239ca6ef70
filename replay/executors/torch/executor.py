"""The executor that really computes: a transformers model over a paged KV pool, on a CPU or a CUDA device.

It hands a step to the device and fetches the ids that it sampled; where asked to, the next step is handed over before
they have come. It does not know why a request gets the tokens that it gets.
"""

from __future__ import annotations

import platform
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median

import numpy as np
import torch
import transformers
from torch import Tensor
from transformers import PreTrainedModel

from replay.clock import WallClock
from replay.executors.interface import Batch, CostModel, Description, Padding, TokenIds
from replay.executors.torch.computing import Computing
from replay.executors.torch.kv_cache import KVCache
from replay.executors.torch.layout import Integers, Row, Rows, lay_out
from replay.executors.torch.linears import KINDS
from replay.executors.torch.memory import check_host_fits, check_kv_fits, kv_shape
from replay.executors.torch.models import max_context
from replay.executors.torch.sampling import uniforms
from replay.executors.torch.sequences import Sequences, Taken
from replay.executors.torch.warm_up import measure_cost
from replay.executors.torch.ways import build_steps
from replay.prompts import Tokenize, draw_prompts
from replay.request import Workload


@dataclass(slots=True)
class Submitted:
    """A step that was handed over: whose tokens it samples, and where they arrive."""

    taken: list[Taken]
    sampled: Tensor
    arrived: torch.cuda.Event | None


class TorchExecutor:
    """Computes steps with `model`, whose attention must be the paged one, over `blocks` blocks of `block_size` tokens.

    Greedy: the sampled token is the one with the largest logit, on a CPU the lowest id among equals. `seed` draws the
    prompts that have no content; `tokenize` turns those of text into ids. `weights` says where the weights are from.
    The model is the executor's from here on: its weights may be laid out anew.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        name: str,
        blocks: int,
        block_size: int,
        seed: int = 0,
        weights: str = "dummy",
        tokenize: Tokenize | None = None,
        special: Sequence[int] = (),
        computing: Computing | None = None,
    ) -> None:
        computing = computing or Computing()
        shape = kv_shape(model.config)
        parameter = next(model.parameters())
        self.device, self.dtype = parameter.device, parameter.dtype
        kv_dtype = computing.kv_dtype or self.dtype
        check_kv_fits(shape, blocks=blocks, block_size=block_size, device=self.device, dtype=kv_dtype)
        if computing.host_blocks:
            check_host_fits(
                shape,
                host_blocks=computing.host_blocks,
                blocks=blocks,
                block_size=block_size,
                device=self.device,
                dtype=kv_dtype,
            )
        self.max_context = max_context(model)
        self.cost = _guess(model)
        self.kv_blocks, self.host_blocks = blocks, computing.host_blocks
        self.overlaps = self.device.type == "cuda" if computing.overlap is None else computing.overlap
        self._vocabulary: int = model.config.get_text_config().vocab_size
        self._architecture, self._parameters = type(model).__name__, model.num_parameters()
        self._name, self._weights, self._seed = name, weights, seed
        self._tokenize, self._special = tokenize, special
        self._cache = KVCache(
            layers=shape.layers,
            heads=shape.heads,
            head_dim=shape.head_dim,
            blocks=blocks,
            block_size=block_size,
            device=self.device,
            dtype=kv_dtype,
            host_blocks=computing.host_blocks,
        )
        positions = min(self.max_context or blocks * block_size, blocks * block_size)
        self._steps, self._way = build_steps(model, self._cache, computing, positions=max(positions, block_size))
        self._sampling = computing.sampling
        self.end_ids: Collection[int] = computing.end_ids
        self._sequences = Sequences([], [])
        self._submitted: deque[Submitted] = deque()

    def describe(self) -> Description:
        device = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else platform.processor()
        details: dict[str, object] = {
            "device": str(self.device),
            "device_name": device or platform.machine(),
            "model": self._name,
            "architecture": self._architecture,
            "weights": self._weights,
            "parameters": self._parameters,
            "dtype": str(self.dtype).removeprefix("torch."),
            **asdict(self._way),
            "linears_are": KINDS[self._way.linears],
            "sampling": asdict(self._sampling),
            "cuda_graphs": len(self._steps.prepared) or None,
            "overlap": self.overlaps and not self.end_ids,  # who stops early is known only when the token is there
            "kv_dtype": str(self._cache.dtype).removeprefix("torch."),
            "kv_blocks": self._cache.blocks,
            "host_blocks": self.host_blocks,
            "block_size": self._cache.block_size,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "seed": self._seed,
            "text_prompts": "tokenized" if self._tokenize else "drawn by length: dummy weights have no tokenizer",
        }
        return Description("torch", simulated=False, details=details)

    def prepare(self, workload: Workload) -> Sequence[TokenIds]:
        """Draw or tokenise the prompts, and forget all requests before; the prompts by row.

        A request whose real prompt has fewer tokens than the trace says gets `prompt_tokens` set to what there is.
        """
        prompts = draw_prompts(workload, self._vocabulary, self._seed, special=self._special, tokenize=self._tokenize)
        self._submitted.clear()
        self._sequences = Sequences(prompts, workload.output_tokens)
        for request, prompt in zip(workload.requests, prompts, strict=True):
            request.prompt_tokens = len(prompt)
        return prompts

    def submit(self, batch: Batch) -> None:
        assert len(self._submitted) <= self.overlaps, "collect the step before"
        rows, late = self._sequences.rows(batch)
        if batch.swapped_blocks:
            self._cache.swap(batch.swap_out, batch.swap_in)
        sampled = self._compute(rows, late, batch.padding)
        arrived = None
        if self.device.type == "cuda":
            sampled = torch.empty(len(sampled), dtype=sampled.dtype, pin_memory=True).copy_(sampled, non_blocking=True)
            arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]  # it has no annotations
            arrived.record()
        self._submitted.append(Submitted(self._sequences.take(batch), sampled, arrived))

    def collect(self) -> list[int]:
        assert self._submitted, "there is no step to collect"
        step = self._submitted.popleft()
        if step.arrived is not None:
            step.arrived.synchronize()
        ids: list[int] = step.sampled.tolist()
        self._sequences.keep(step.taken, ids)
        return ids

    def outputs(self, row: int) -> list[int]:
        """The token ids of a request's answer so far."""
        return self._sequences.answer(row)

    def prompt(self, row: int) -> list[int]:
        """The token ids of a request's prompt."""
        return self._sequences.prompt(row)

    def warm_up(
        self, *, rows: int = 8, tokens: int = 256, context: int = 512, slots: int | None = None, seconds: float = 1.5
    ) -> CostModel:
        """Run steps of up to `rows` decodes, chunks of `tokens` and `context` tokens each, and fit `cost` to them.

        It takes about `seconds`, or three steps of each kind where those take longer; before, the device is prepared
        for decodes of up to `slots` requests. It writes over the pool: call it before `prepare`, never while requests
        are resident.
        """
        assert not self._submitted, "the engine is not idle"
        self._steps.warm_up(slots or rows, tokens)
        self.cost = measure_cost(
            lambda batch: self.compute(batch).tolist(),
            blocks=self._cache.blocks,
            block_size=self._cache.block_size,
            rows=rows,
            tokens=tokens,
            context=min(context, self.max_context or context, self._cache.blocks * self._cache.block_size),
            seconds=seconds,
        )
        self.cost = replace(self.cost, swap=self._measure_swap())
        return self.cost

    def _measure_swap(self) -> float:
        """Seconds to copy one block to host memory or back, as a few are copied at once; 0 where there is no room."""
        count = min(8, self.host_blocks, self.kv_blocks)
        pairs, clock, times = [(block, block) for block in range(count)], WallClock(), []
        for _ in range(5 if count else 0):
            start = clock.now()
            self._cache.swap(pairs, pairs)
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            times.append((clock.now() - start) / (2 * count))
        return median(times) if times else 0.0

    def compute(self, rows: Sequence[Row], padding: Padding | None = None) -> Tensor:
        """One forward pass: the ids sampled for the rows that sample, in order; on the device, maybe still in work."""
        stacked = Rows.of(rows)
        return self._compute(stacked, np.full(len(stacked.ids), -1, dtype=np.int64), padding)

    def _compute(self, rows: Rows, late: Integers, padding: Padding | None) -> Tensor:
        layout = lay_out(rows, padding, self._cache.block_size, self._cache.spare_block)
        draws = np.zeros(len(layout.sampled), dtype=np.float32)
        if self._sampling.temperature:
            sampling, ends = rows.samples, rows.starts + rows.lengths
            draws[: layout.samples] = uniforms(self._seed, rows.owners[sampling], ends[sampling])
        return self._steps.run(layout, late, draws)[: layout.samples]


def _guess(model: PreTrainedModel) -> CostModel:
    """A cost until a warm-up has measured one: weights read at 10 GB/s, arithmetic at 50 GFLOP/s."""
    parameters = model.num_parameters()
    each = 2 * parameters / 50e9
    return CostModel(fixed=parameters * next(model.parameters()).element_size() / 10e9, prefill=each, decode=each)

"""The executor that really computes: a transformers model over a paged KV pool, on a CPU or a CUDA device.

It keeps each request's token ids, prompt and answer, so that a request that starts again at 0 after an eviction goes
on where it was. It does not know why a request gets the tokens that it gets.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import transformers
from torch import Tensor
from transformers import PreTrainedModel

from replay.errors import EngineError
from replay.executors.interface import Batch, CostModel, Description, Padding, Share
from replay.executors.torch.attention import IMPLEMENTATION, KVCache, Paged
from replay.executors.torch.layout import Integers, Layout, Row, TokenIds, lay_out
from replay.executors.torch.memory import check_kv_fits, kv_shape
from replay.executors.torch.models import max_context
from replay.executors.torch.warm_up import measure_cost
from replay.prompts import Tokenize, draw_prompts
from replay.request import Workload


@dataclass(slots=True)
class Tokens:
    """The token ids of one request: a prompt of `prompt` ids and the answer, `known` ids in all so far."""

    ids: TokenIds
    prompt: int
    known: int


class TorchExecutor:
    """Computes steps with `model`, whose attention must be the paged one, over `blocks` blocks of `block_size` tokens.

    Greedy: the sampled token is the one with the largest logit, the lowest id among equals. `seed` draws the prompts
    that have no content; `tokenize` turns those of text into ids. `weights` says where the weights are from.
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
    ) -> None:
        shape = kv_shape(model.config)
        parameter = next(model.parameters())
        self.device, self.dtype = parameter.device, parameter.dtype
        check_kv_fits(shape, blocks=blocks, block_size=block_size, device=self.device, dtype=self.dtype)
        self.max_context = max_context(model)
        self.kv_blocks, self.host_blocks, self.overlaps = blocks, 0, False
        self.cost = _guess(model)
        self._model = model
        self._name, self._weights, self._seed = name, weights, seed
        self._tokenize, self._special = tokenize, special
        self._cache = KVCache(
            layers=shape.layers,
            heads=shape.heads,
            head_dim=shape.head_dim,
            blocks=blocks,
            block_size=block_size,
            device=self.device,
            dtype=self.dtype,
        )
        self._tokens: dict[int, Tokens] = {}
        self._pending: tuple[Batch, Tensor] | None = None
        self._check_model()

    def describe(self) -> Description:
        device = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else platform.processor()
        details: dict[str, object] = {
            "device": str(self.device),
            "device_name": device or platform.machine(),
            "model": self._name,
            "architecture": type(self._model).__name__,
            "weights": self._weights,
            "parameters": self._model.num_parameters(),
            "dtype": str(self.dtype).removeprefix("torch."),
            "attention": IMPLEMENTATION,
            "kv_blocks": self._cache.blocks,
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
        config = self._model.config.get_text_config()
        prompts = draw_prompts(workload, config.vocab_size, self._seed, special=self._special, tokenize=self._tokenize)
        self._pending = None
        self._tokens = {}
        for request, prompt in zip(workload.requests, prompts, strict=True):
            request.prompt_tokens = len(prompt)
            ids = np.zeros(len(prompt) + workload.output_tokens[request.row], dtype=np.int32)
            ids[: len(prompt)] = prompt
            self._tokens[request.row] = Tokens(ids, prompt=len(prompt), known=len(prompt))
        return prompts

    def submit(self, batch: Batch) -> None:
        assert self._pending is None, "one step at a time: collect the one before"
        rows = [self._row(share) for share in batch.shares]
        self._pending = (batch, self.compute(rows, batch.padding))

    def collect(self) -> list[int]:
        assert self._pending is not None, "there is no step to collect"
        (batch, sampled), self._pending = self._pending, None
        ids: list[int] = sampled.tolist()
        for share, token in zip((share for share in batch.shares if share.samples), ids, strict=True):
            tokens = self._tokens[share.request.row]
            tokens.ids[tokens.known] = token
            tokens.known += 1
        return ids

    def outputs(self, row: int) -> list[int]:
        """The token ids of a request's answer so far."""
        tokens = self._tokens[row]
        answer: list[int] = tokens.ids[tokens.prompt : tokens.known].tolist()
        return answer

    def prompt(self, row: int) -> list[int]:
        """The token ids of a request's prompt."""
        tokens = self._tokens[row]
        prompt: list[int] = tokens.ids[: tokens.prompt].tolist()
        return prompt

    def warm_up(self, *, rows: int = 8, tokens: int = 256, context: int = 512, seconds: float = 1.5) -> CostModel:
        """Run steps of up to `rows` decodes, chunks of `tokens` and `context` tokens each, and fit `cost` to them.

        It takes about `seconds`, or three steps of each kind where those take longer. It writes over the pool: call
        it before `prepare`, never while requests are resident.
        """
        assert self._pending is None, "the engine is not idle"
        self.cost = measure_cost(
            lambda batch: self.compute(batch).tolist(),
            blocks=self._cache.blocks,
            block_size=self._cache.block_size,
            rows=rows,
            tokens=tokens,
            context=min(context, self.max_context or context),
            seconds=seconds,
        )
        return self.cost

    @torch.inference_mode()
    def compute(self, rows: Sequence[Row], padding: Padding | None = None) -> Tensor:
        """One forward pass: the ids sampled for the rows that sample, in order; on the device, maybe still in work."""
        layout = lay_out(rows, padding, self._cache.block_size, self._cache.spare_block)
        sampled: Tensor = self._logits(layout, Paged.of(layout, self._cache)).argmax(dim=-1)
        return sampled[: layout.samples]

    def _logits(self, layout: Layout, paged: Paged) -> Tensor:
        """The logits [sampled, vocabulary] of one forward pass."""
        output = self._model(
            input_ids=self._to_device(layout.ids)[None],
            position_ids=self._to_device(layout.positions)[None],
            use_cache=False,
            logits_to_keep=self._to_device(layout.sampled),
            paged=paged,
        )
        logits: Tensor = output.logits[0]
        return logits

    def _row(self, share: Share) -> Row:
        tokens = self._tokens[share.request.row]
        end = share.start + share.tokens
        assert end <= tokens.known, f"row {share.request.row}: {end} tokens asked for, {tokens.known} known"
        assert not share.samples or end == tokens.known, (
            f"row {share.request.row}: a token is sampled only after the last"
        )
        return Row(tokens.ids[share.start : end], share.start, share.blocks, share.samples)

    def _to_device(self, numbers: Integers) -> Tensor:
        return torch.from_numpy(numbers).to(self.device, non_blocking=True)

    def _check_model(self) -> None:
        """Run one token, so that a model that cannot be paged is refused before anything is replayed."""
        row = Row(np.zeros(1, dtype=np.int32), 0, (0,), samples=True)
        layout = lay_out([row], None, self._cache.block_size, self._cache.spare_block)
        paged = Paged.of(layout, self._cache)
        with torch.inference_mode():
            self._logits(layout, paged)
        if paged.layers != self._cache.layers:
            raise EngineError(
                f"{type(self._model).__name__} called the paged attention {paged.layers} times for its "
                f"{self._cache.layers} layers; a model is needed that calls it once in each"
            )


def _guess(model: PreTrainedModel) -> CostModel:
    """A cost until a warm-up has measured one: weights read at 10 GB/s, arithmetic at 50 GFLOP/s."""
    parameters = model.num_parameters()
    each = 2 * parameters / 50e9
    return CostModel(fixed=parameters * next(model.parameters()).element_size() / 10e9, prefill=each, decode=each)

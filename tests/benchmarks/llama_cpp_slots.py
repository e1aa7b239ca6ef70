"""Peer: llama.cpp through the low-level batch API of llama-cpp-python, in a continuous loop of our own over slots.

Its own server in Python serves one request after another. Prompts share a batch with the decodes of the others, and
the largest logit is taken as numpy does it, for all rows at once. (Named so that it does not hide `llama_cpp`.)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from job import JOBS, LONGEST, Job, Work
from protocol import arguments, serve

SLOTS = 16  # where lengths differ; equal lengths run all at once
BATCH = 512  # tokens of one call, at most


@dataclass
class Slot:
    """What runs in a slot: its request by number, the answer so far, and the row of its logits in the last batch."""

    number: int
    work: Work
    answer: list[int]
    row: int = 0


class LlamaCpp:
    """A context, with a KV cache for each slot or a unified one for all."""

    def __init__(self, weights: Path, threads: int, slots: int, *, unified: bool) -> None:
        llama_cpp.llama_backend_init()
        model_settings = llama_cpp.llama_model_default_params()
        model_settings.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(str(weights).encode(), model_settings)
        assert self._model, f"{weights} cannot be loaded"
        most = max(slots, *(batch for _, _, _, batch in JOBS.values()))
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = most * LONGEST
        settings.n_batch = settings.n_ubatch = BATCH
        settings.n_seq_max = most
        settings.n_threads = settings.n_threads_batch = threads
        settings.kv_unified = unified
        self._context = llama_cpp.llama_init_from_model(self._model, settings)
        assert self._context, "no context"
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))
        self._batch = llama_cpp.llama_batch_init(BATCH, 0, 1)
        self._slots = slots
        self.about: dict[str, object] = {
            "version": f"llama-cpp-python {llama_cpp.__version__}",
            "weights": weights.name,
            "slots": slots,
            "kv_unified": unified,
            "features": llama_cpp.llama_print_system_info().decode(),
        }
        self.details: dict[str, object] = {}

    def answer(self, job: Job) -> list[list[int]]:
        slots: list[Slot | None] = [None] * (self._slots if len(job.requests) > job.batch else job.batch)
        queue = list(enumerate(job.requests))[::-1]
        answers: list[list[int]] = [[] for _ in job.requests]
        llama_cpp.llama_memory_clear(self._memory, True)
        while queue or any(slots):
            rows = self._fill(slots, queue)
            code = llama_cpp.llama_decode(self._context, self._batch)
            assert code == 0, f"llama_decode answered {code}"
            tokens = self._largest(rows)
            for place, slot in enumerate(slots):
                if slot is None:
                    continue
                slot.answer.append(tokens[slot.row])
                if len(slot.answer) == slot.work.output:
                    answers[slot.number] = slot.answer
                    llama_cpp.llama_memory_seq_rm(self._memory, place, -1, -1)
                    slots[place] = None
        return answers

    def _fill(self, slots: list[Slot | None], queue: list[tuple[int, Work]]) -> int:
        """Put the step into the batch: a token of each running slot, then whole prompts while there is room."""
        self._batch.n_tokens = 0
        rows = 0
        for place, slot in enumerate(slots):
            if slot is not None:
                self._add(slot.answer[-1], len(slot.work.prompt) + len(slot.answer) - 1, place, sample=True)
                slot.row, rows = rows, rows + 1
        for place, slot in enumerate(slots):
            if slot is None and queue and self._batch.n_tokens + len(queue[-1][1].prompt) <= BATCH:
                number, work = queue.pop()
                for position, token in enumerate(work.prompt):
                    self._add(token, position, place, sample=position == len(work.prompt) - 1)
                slots[place] = Slot(number, work, [], rows)
                rows += 1
        return rows

    def _add(self, token: int, position: int, place: int, *, sample: bool) -> None:
        batch: Any = self._batch
        i = batch.n_tokens
        batch.token[i], batch.pos[i], batch.logits[i] = token, position, sample
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, place
        batch.n_tokens = i + 1

    def _largest(self, rows: int) -> list[int]:
        """The token of the largest logit, for each row of the last batch that was to be sampled, in their order."""
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits(self._context), shape=(rows, self._vocabulary))
        largest: list[int] = logits.argmax(axis=1).tolist()
        return largest


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="GGUF file")
    parser.add_argument("--slots", type=int, default=SLOTS)
    parser.add_argument("--one-cache", action="store_true", help="one KV cache for all slots: a tenth slower here")
    given = parser.parse_args()
    serve(given.model, lambda: LlamaCpp(given.weights, given.threads, given.slots, unified=given.one_cache))

"""Peer: transformers' `generate` in static batches, in order of arrival; each runs until its longest answer is done."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers
from job import Job
from protocol import arguments, serve
from transformers import AutoModelForCausalLM


class Static:
    """`generate` with transformers' defaults: SDPA attention, a dynamic cache, float32."""

    def __init__(self, model: Path, threads: int) -> None:
        torch.set_num_threads(threads)
        self._model = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
        self._model.generation_config.eos_token_id = None
        self._model.generation_config.pad_token_id = 0
        self.about: dict[str, object] = {"version": f"transformers {transformers.__version__}"}
        self.details: dict[str, object] = {}

    def answer(self, job: Job) -> list[list[int]]:
        answers: list[list[int]] = []
        for first in range(0, len(job.requests), job.batch):
            works = job.requests[first : first + job.batch]
            prompts = torch.tensor([work.prompt for work in works])
            result = self._model.generate(
                prompts,
                attention_mask=torch.ones_like(prompts),
                max_new_tokens=max(work.output for work in works),
                do_sample=False,
            )
            rows = result[:, prompts.shape[1] :].tolist()
            answers += [row[: work.output] for row, work in zip(rows, works, strict=True)]
        return answers


if __name__ == "__main__":
    given = arguments(__doc__).parse_args()
    serve(given.model, lambda: Static(given.model, given.threads))

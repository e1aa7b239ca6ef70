"""Peer: transformers' own continuous batching, through its manager, which takes a length for each request.

`generate_batch` is the same engine with one length for all, and sets the manager up anew at each call; here it stays.
"""

from __future__ import annotations

from pathlib import Path

import torch
import transformers
from job import LARGEST, LONGEST, Job
from protocol import arguments, serve
from transformers import AutoModelForCausalLM, ContinuousBatchingConfig, GenerationConfig

PAGE = 32  # tokens; of what was tried, the settings here were the fastest
MAX_REQUESTS = 32
MAX_BATCH_TOKENS = 2048
NO_TOKEN = -1  # transformers' own word for "no end token"


class Continuous:
    """A manager over the model with SDPA attention in float32; no prefix is shared, as none is by the others."""

    def __init__(self, model: Path, threads: int, max_requests: int, max_batch_tokens: int) -> None:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        weights = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32, attn_implementation="sdpa").eval()
        self._manager = weights.init_continuous_batching(
            generation_config=GenerationConfig(do_sample=False, eos_token_id=NO_TOKEN, pad_token_id=0),
            continuous_batching_config=ContinuousBatchingConfig(
                page_size=PAGE,
                num_blocks=LARGEST * -(-LONGEST // PAGE),
                max_batch_tokens=max_batch_tokens,
                max_requests_per_batch=max_requests,
                allow_block_sharing=False,
            ),
        )
        self._manager.start()
        self.about: dict[str, object] = {
            "version": f"transformers {transformers.__version__}",
            "page_size": PAGE,
            "max_requests_per_batch": max_requests,
            "max_batch_tokens": max_batch_tokens,
        }
        self.details: dict[str, object] = {}

    def answer(self, job: Job) -> list[list[int]]:
        names = [self._manager.add_request(work.prompt, max_new_tokens=work.output) for work in job.requests]
        answers: dict[str, list[int]] = {}
        while len(answers) < len(names):
            result = self._manager.get_result(timeout=1)
            if result is None:
                assert self._manager.is_running(), "the manager has stopped"
            elif result.is_finished():
                answers[result.request_id] = list(result.generated_tokens)
        return [answers[name] for name in names]


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--max-requests", type=int, default=MAX_REQUESTS)
    parser.add_argument("--max-batch-tokens", type=int, default=MAX_BATCH_TOKENS)
    given = parser.parse_args()
    serve(given.model, lambda: Continuous(given.model, given.threads, given.max_requests, given.max_batch_tokens))

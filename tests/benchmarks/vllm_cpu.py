"""Peer: vLLM on the CPU, in float32, compiled as it compiles by default, through its own `LLM` class."""

from __future__ import annotations

import os
from pathlib import Path

from job import LARGEST, LONGEST, Job
from protocol import arguments, serve

MAX_RUNNING = 32
KV_BYTES = 2**30


class VLLM:
    """An `LLM` without prefix cache, as none of the others shares prefixes."""

    def __init__(self, model: Path) -> None:
        import vllm  # late: its worker starts this file anew, and reads the environment when imported

        self._sampling = vllm.SamplingParams
        self._llm = vllm.LLM(
            str(model),
            dtype="float32",
            max_num_seqs=MAX_RUNNING,
            max_model_len=LONGEST,
            kv_cache_memory_bytes=KV_BYTES,
            enable_prefix_caching=False,
            skip_tokenizer_init=True,
        )
        self.about: dict[str, object] = {
            "version": f"vllm {vllm.__version__}",
            "max_num_seqs": MAX_RUNNING,
            "requests": LARGEST,
        }
        self.details: dict[str, object] = {}

    def answer(self, job: Job) -> list[list[int]]:
        outputs = self._llm.generate(
            [{"prompt_token_ids": work.prompt} for work in job.requests],
            [
                self._sampling(temperature=0.0, max_tokens=work.output, ignore_eos=True, detokenize=False)
                for work in job.requests
            ],
            use_tqdm=False,
        )
        return [list(output.outputs[0].token_ids) for output in outputs]


if __name__ == "__main__":
    parser = arguments(__doc__)
    given = parser.parse_args()
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    serve(given.model, lambda: VLLM(given.model))

"""The work that every peer is given: requests by name of a job, the same token ids in every process.

It needs the standard library alone, because each peer runs in an interpreter of its own.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

PROMPT = 64  # tokens of each prompt
SEED = 20
STATIC_BATCH = 16  # requests that a peer without continuous batching takes at once, where lengths differ


@dataclass(frozen=True)
class Work:
    """One request: the ids of its prompt, and how many tokens to answer, whatever they are."""

    prompt: list[int]
    output: int


@dataclass(frozen=True)
class Job:
    """Requests that are all queued at once. `batch`: of how many a static batch is made."""

    name: str
    requests: list[Work]
    batch: int

    @property
    def output_tokens(self) -> int:
        """Tokens of all answers."""
        return sum(work.output for work in self.requests)


# How many requests, the shortest answer and the longest (both included, drawn evenly), and the static batch.
JOBS = {
    "mixed": (64, 8, 128, STATIC_BATCH),
    "batch1": (1, 64, 64, 1),
    "batch8": (8, 64, 64, 8),
    "batch32": (32, 64, 64, 32),
}
WARM_UP = "warm-up"  # run once by each peer when it is ready, and not reported
LARGEST = max(count for count, *_ in JOBS.values())
LONGEST = PROMPT + max(longest for _, _, longest, _ in JOBS.values())  # tokens of one request, answer included


def make_job(name: str, model: Path) -> Job:
    """The job of this name for the model in the folder `model`, whose vocabulary the ids are drawn from."""
    count, shortest, longest, batch = JOBS[name] if name != WARM_UP else (32, 16, 16, 32)
    vocabulary: int = json.loads((model / "config.json").read_text())["vocab_size"]
    draw = random.Random(SEED)
    outputs = [draw.randint(shortest, longest) for _ in range(count)]
    prompts = [[draw.randrange(vocabulary) for _ in range(PROMPT)] for _ in range(count)]
    return Job(name, [Work(*each) for each in zip(prompts, outputs, strict=True)], batch)

"""Times decode steps of an executor at one batch size: what batching gains, with nothing of a scheduler in between.

It goes by the interface that every executor has, and knows nothing of models or devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from replay.clock import WallClock
from replay.executors.interface import Batch, Executor, Share
from replay.request import Request, Workload

UNTIMED, LEAST, MOST = 2, 5, 32  # steps: the first ones count for nothing
SECONDS = 3.0  # of timed steps, unless so few are not the least


@dataclass(slots=True, frozen=True)
class Decoded:
    """The median step of `steps` in which `batch_size` requests decode, over `context` tokens each on average."""

    batch_size: int
    context: float
    steps: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        return self.batch_size / self.seconds


def blocks_needed(batch_size: int, context: int, block_size: int) -> int:
    """Blocks of a pool that `time_decodes` can be run over."""
    return batch_size * -(-longest_context(context) // block_size)


def time_decodes(executor: Executor, *, batch_size: int, context: int, block_size: int) -> Decoded:
    """Decode with `batch_size` requests over about `context` tokens each, and take the median of the steps' times.

    The keys and values before the first step are whatever the pool holds: time depends on their number alone. The
    executor must be idle, and hold `blocks_needed` blocks; `context` must be 1 at least.
    """
    first = _first(context)
    requests = [Request(row, str(row), arrival=0.0, prompt_tokens=first, max_tokens=MOST) for row in range(batch_size)]
    executor.prepare(Workload(requests, [UNTIMED + MOST] * batch_size))
    each = -(-longest_context(context) // block_size)
    tables = [range(row * each, (row + 1) * each) for row in range(batch_size)]
    clock, times, contexts = WallClock(), [], []
    for step in range(UNTIMED + MOST):
        start = first - 1 + step  # the last token of the prompt, then one token of the answer after the other
        shares = [
            Share(request, start, 1, samples=True, blocks=table)
            for request, table in zip(requests, tables, strict=True)
        ]
        began = clock.now()
        executor.submit(Batch(shares))
        executor.collect()
        if step >= UNTIMED:
            times.append(clock.now() - began)
            contexts.append(start + 1)
        if len(times) >= LEAST and sum(times) >= SECONDS:
            break
    return Decoded(batch_size, sum(contexts) / len(contexts), len(times), median(times))


def _first(context: int) -> int:
    """Tokens of the prompt, so that the timed steps lie around `context`."""
    return max(context - UNTIMED - MOST // 2, 1)


def longest_context(context: int) -> int:
    """Tokens of the longest request of `time_decodes`, at its end."""
    return _first(context) + UNTIMED + MOST

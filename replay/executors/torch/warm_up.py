"""The steps of a warm-up: a small grid of batches like those to come, timed, and a cost model fitted to them.

It knows what a batch looks like, and nothing of the model behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from replay.clock import WallClock
from replay.executors.fitting import Measurement, fit_cost
from replay.executors.interface import CostModel
from replay.executors.torch.layout import Row

SHORT_CONTEXT = 32  # tokens: decodes are measured over this and over the longest
LEAST_ROUNDS, MOST_ROUNDS = 3, 15
PATIENCE = 10  # times the seconds that were asked for: then fewer rounds must do, as the model is large


@dataclass(slots=True, frozen=True)
class Probe:
    """One batch of the grid: `decodes` decodes over `context` tokens each, and a chunk of `chunk` that ends there."""

    decodes: int
    chunk: int
    context: int

    def rows(self, blocks: int, block_size: int) -> list[Row]:
        """The batch, its tables spread over the pool; where the pool is too small they share blocks."""
        each = -(-self.context // block_size)
        lengths = [1] * self.decodes + [self.chunk] * (self.chunk > 0)
        return [
            Row(
                ids=np.ones(length, dtype=np.int32),
                start=self.context - length,
                blocks=[(i * each + j) % blocks for j in range(each)],
                samples=True,
            )
            for i, length in enumerate(lengths)
        ]

    def measurement(self, seconds: float) -> Measurement:
        """What the cost model is told of this batch."""
        return Measurement(self.chunk, self.decodes, self.context * (self.decodes + (self.chunk > 0)), seconds)


def grid(rows: int, tokens: int, context: int) -> list[Probe]:
    """Decodes few and many, over short and long contexts; chunks small and large, first and last; and both at once."""
    short, chunk = min(SHORT_CONTEXT, context), min(tokens, context)
    decodes = [Probe(count, 0, length) for count in {1, max(rows // 2, 1), rows} for length in {short, context}]
    first = [Probe(0, count, count) for count in {min(16, chunk), max(chunk // 4, 1), chunk}]
    last = [Probe(0, max(chunk // 4, 1), context)]
    return [*decodes, *first, *last, Probe(rows, max(chunk // 2, 1), context)]


def measure_cost(
    compute: Callable[[list[Row]], object],
    *,
    blocks: int,
    block_size: int,
    rows: int,
    tokens: int,
    context: int,
    seconds: float,
) -> CostModel:
    """Time `compute` on the grid for about `seconds`, and fit.

    A first round is not measured; of each batch's times the median counts, of at least three rounds unless they took
    ten times as long as was asked for.
    """
    clock = WallClock()
    probes = grid(rows, tokens, context)
    batches = [probe.rows(blocks, block_size) for probe in probes]
    times: list[list[float]] = [[] for _ in probes]
    for batch in batches:
        compute(batch)
    for done in range(1, MOST_ROUNDS + 1):
        for batch, measured in zip(batches, times, strict=True):
            start = clock.now()
            compute(batch)
            measured.append(clock.now() - start)
        if clock.now() >= (seconds if done >= LEAST_ROUNDS else PATIENCE * seconds):
            break
    return fit_cost([probe.measurement(median(measured)) for probe, measured in zip(probes, times, strict=True)])

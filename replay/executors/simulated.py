"""A cost model in place of an engine: a step takes the time that the model says, and its tokens mean nothing.

On a virtual clock a replay is instant and exact; on a wall clock the same executor sleeps, which tests pacing alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from replay.clock import Clock, to_nanosecond
from replay.executors.interface import Batch, CostModel, Description, TokenIds
from replay.request import Workload


class SimulatedExecutor:
    """Computes nothing, and takes as long as `cost` says. Padding costs what the tokens in its place would."""

    max_context: int | None = None
    overlaps: bool = False

    def __init__(self, cost: CostModel, clock: Clock, *, kv_blocks: int = 1024, host_blocks: int = 0) -> None:
        self.cost = cost
        self.kv_blocks = kv_blocks
        self.host_blocks = host_blocks
        self._clock = clock
        self._end = 0.0
        self._samples = 0

    def describe(self) -> Description:
        cost = self.cost
        return Description(
            "simulated",
            simulated=True,
            details={"cost": {name: getattr(cost, name) for name in ("fixed", "prefill", "decode", "context", "swap")}},
        )

    def prepare(self, workload: Workload) -> Sequence[TokenIds]:
        """Nothing to prepare: tokens have no content here."""
        return []

    def submit(self, batch: Batch) -> None:
        prefill, decodes = batch.prefill_tokens, batch.decodes
        if batch.padding is not None:
            if batch.padding.width > 1 or prefill:
                prefill, decodes = batch.padding.rows * batch.padding.width, 0
            else:
                decodes = batch.padding.rows
        seconds = self.cost.seconds(prefill, decodes, batch.context_tokens, batch.swapped_blocks)
        self._end = to_nanosecond(self._clock.now() + seconds)
        self._samples = sum(share.samples for share in batch.shares)

    def collect(self) -> list[int]:
        self._clock.sleep_until(self._end)
        return [0] * self._samples

"""A cost model in place of an engine: a step takes the time that the model says, and its tokens mean nothing.

On a virtual clock a replay is instant and exact; on a wall clock the same executor sleeps, which tests pacing alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from replay.clock import Clock, to_nanosecond
from replay.executors.interface import Batch, CostModel, Description, TokenIds
from replay.prompts import draw_prompts
from replay.request import Workload

VOCABULARY = 65_536  # ids to draw prompts from, where no model says how many there are


class SimulatedExecutor:
    """Computes nothing, and takes as long as `cost` says. Padding costs what the tokens in its place would.

    `prompt_seed` says that a prefix cache needs to know which prompts begin alike: then those without token ids are
    drawn from it, texts too, as there is no tokenizer.
    """

    max_context: int | None = None
    overlaps: bool = False
    end_ids: Collection[int] = ()

    def __init__(
        self,
        cost: CostModel,
        clock: Clock,
        *,
        kv_blocks: int = 1024,
        host_blocks: int = 0,
        prompt_seed: int | None = None,
    ) -> None:
        self.cost = cost
        self.kv_blocks = kv_blocks
        self.host_blocks = host_blocks
        self._prompt_seed = prompt_seed
        self._clock = clock
        self._end = 0.0
        self._samples = 0

    def describe(self) -> Description:
        cost = self.cost
        details: dict[str, object] = {
            "cost": {name: getattr(cost, name) for name in ("fixed", "prefill", "decode", "context", "swap")}
        }
        if self.host_blocks:
            details["host_blocks"] = self.host_blocks
        return Description("simulated", simulated=True, details=details)

    def prepare(self, workload: Workload) -> Sequence[TokenIds]:
        """Prompts by row, where a prefix cache asks for them; otherwise tokens have no content here."""
        if self._prompt_seed is None:
            return []
        real = (max(ids) for ids in workload.prompts.values() if not isinstance(ids, str) and len(ids))
        return draw_prompts(workload, max(VOCABULARY, 1 + max(real, default=0)), self._prompt_seed)

    def seconds(self, batch: Batch) -> float:
        """What a step takes, by the cost model."""
        prefill, decodes = batch.prefill_tokens, batch.decodes
        if batch.padding is not None:
            if batch.padding.width > 1 or prefill:
                prefill, decodes = batch.padding.rows * batch.padding.width, 0
            else:
                decodes = batch.padding.rows
        return self.cost.seconds(prefill, decodes, batch.context_tokens, batch.swapped_blocks)

    def submit(self, batch: Batch) -> None:
        self._end = to_nanosecond(self._clock.now() + self.seconds(batch))
        self._samples = sum(share.samples for share in batch.shares)

    def collect(self) -> list[int]:
        self._clock.sleep_until(self._end)
        return [0] * self._samples

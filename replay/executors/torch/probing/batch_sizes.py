"""An engine at several batch sizes: the time of a decode step, what it used of the machine, and what tokens cost.

It brings an executor, the counts of its model and the ceilings of its device together; it schedules nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from replay.ceilings import Ceilings
from replay.errors import ExperimentError
from replay.executors.roofline import Roofline
from replay.executors.torch import build_torch_executor
from replay.executors.torch.probing.accounting import work_of
from replay.executors.torch.probing.decodes import Decoded, blocks_needed, longest_context, time_decodes
from replay.executors.torch.probing.device_use import DeviceUse
from replay.executors.work import Work

BLOCK_SIZE = 16
WARM_TOKENS, WARM_SECONDS = 32, 0.1  # a short warm-up: it is decodes that are timed, and those have steps of their own


@dataclass(slots=True, frozen=True)
class BatchSize:
    """One row: what was timed, its roofline where the model's work can be counted, device memory, cost of tokens."""

    decoded: Decoded
    roofline: Roofline | None
    memory: int | None
    memory_source: str | None
    cost_per_million: float | None

    @property
    def arithmetic_used(self) -> float | None:
        return None if self.roofline is None else self.roofline.arithmetic_used(self.decoded.seconds)

    @property
    def bandwidth_used(self) -> float | None:
        return None if self.roofline is None else self.roofline.bandwidth_used(self.decoded.seconds)

    def facts(self) -> dict[str, Any]:
        """For JSON: seconds, bytes and shares."""
        roof = self.roofline
        return {
            **asdict(self.decoded),
            "tokens_per_second": self.decoded.tokens_per_second,
            "flops": None if roof is None else roof.flops,
            "traffic": None if roof is None else roof.traffic,
            "least_seconds": None if roof is None else roof.least_seconds,
            "bound": None if roof is None else roof.bound,
            "arithmetic_used": self.arithmetic_used,
            "bandwidth_used": self.bandwidth_used,
            "memory": self.memory,
            "memory_source": self.memory_source,
            "cost_per_million_tokens": self.cost_per_million,
        }


@dataclass(slots=True, frozen=True)
class BatchSizes:
    """A model at several batch sizes. `engine` is what the executor says of itself."""

    model: str
    context: int
    price_per_hour: float | None
    work: Work | None
    engine: dict[str, object]
    rows: list[BatchSize]

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "model": self.model,
            "context": self.context,
            "price_per_hour": self.price_per_hour,
            "work": None if self.work is None else self.work.facts(),
            "engine": self.engine,
            "batch_sizes": [row.facts() for row in self.rows],
        }


def time_batch_sizes(
    ceilings: Ceilings,
    *,
    model: str,
    device: str,
    threads: int | None,
    dtype: str,
    linears: str,
    batch_sizes: list[int],
    context: int,
    price_per_hour: float | None,
) -> BatchSizes:
    """Build the engine once, with a pool for the largest batch, and time decode steps at each size.

    Raises EngineError when it cannot be built, ExperimentError when the model does not take such a context.
    """
    executor = build_torch_executor(
        model=model,
        device=device,
        threads=threads,
        dtype=dtype,
        linears=linears,
        blocks=blocks_needed(max(batch_sizes), context, BLOCK_SIZE),
        block_size=BLOCK_SIZE,
    )
    longest = longest_context(context)
    if executor.max_context is not None and longest > executor.max_context:
        raise ExperimentError(
            f"--context {context}: decode steps around it reach {longest:,} tokens, and {model} takes at most "
            f"{executor.max_context:,}"
        )
    executor.warm_up(rows=max(batch_sizes), tokens=min(WARM_TOKENS, context), context=context, seconds=WARM_SECONDS)
    details = executor.describe().details
    work = work_of(details)
    rows = []
    for batch_size in batch_sizes:
        use = DeviceUse(str(details["device"]))
        use.start()
        decoded = time_decodes(executor, batch_size=batch_size, context=context, block_size=BLOCK_SIZE)
        used = use.stop()
        cost = None if price_per_hour is None else 1e6 * price_per_hour / 3600 / decoded.tokens_per_second
        roofline = None if work is None else _roofline(work, decoded, ceilings)
        rows.append(BatchSize(decoded, roofline, used.memory, used.memory_source, cost))
    return BatchSizes(model, context, price_per_hour, work, details, rows)


def _roofline(work: Work, decoded: Decoded, ceilings: Ceilings) -> Roofline:
    """Of one step: a token a request, each sampled, each attending to its context."""
    rows, pairs = decoded.batch_size, round(decoded.batch_size * decoded.context)
    return Roofline(
        flops=work.flops(tokens=rows, samples=rows, pairs=pairs),
        traffic=work.traffic(tokens=rows, samples=rows, context=pairs),
        ceilings=ceilings,
    )

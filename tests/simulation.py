"""A replay in memory, on a virtual clock, for tests: requests in, tables out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.clock import VirtualClock
from replay.executors.interface import Batch, CostModel
from replay.executors.simulated import SimulatedExecutor
from replay.pool import KVPool
from replay.predictors import Predictor, predictors
from replay.records import SCHEMAS, Records
from replay.replayer import Replayer
from replay.request import Request, Workload
from replay.scheduler import Limits, Mode, Policy, modes
from replay.scheduler import policies as policy_registry

UNIT = CostModel(fixed=0.010)  # every step lasts 10 ms, whatever it holds


@dataclass
class Replayed:
    """What a simulated replay left: tables, and the requests as they ended."""

    requests: pl.DataFrame
    steps: pl.DataFrame
    spans: pl.DataFrame
    objects: list[Request]
    batches: list[Batch]

    def column(self, name: str) -> list[Any]:
        """A column of the requests, in order of the trace."""
        return self.requests.sort("row")[name].to_list()


def request(row: int, arrival: float = 0.0, prompt: int = 1, **fields: Any) -> Request:
    """A request of a test; `max_tokens` is 64 unless given."""
    fields = {"max_tokens": 64, "request_id": str(row)} | fields
    if "priority" in fields:
        fields.setdefault("urgency", fields["priority"])
    return Request(row=row, arrival=arrival, prompt_tokens=prompt, **fields)


class CheckedExecutor(SimulatedExecutor):
    """A simulated executor that keeps what it was given."""

    def __init__(self, cost: CostModel, clock: VirtualClock) -> None:
        super().__init__(cost, clock)
        self.batches: list[Batch] = []
        self.check: Callable[[Batch], None] = lambda batch: None

    def submit(self, batch: Batch) -> None:
        self.check(batch)
        self.batches.append(batch)
        super().submit(batch)


def simulate(
    rows: Sequence[Request],
    outputs: Sequence[int],
    *,
    mode: str | Mode = "continuous",
    policy: str | Policy = "fifo",
    blocks: int = 1000,
    block_size: int = 16,
    cost: CostModel = UNIT,
    predictor: str | Predictor = "oracle",
    limits: Limits | None = None,
    check: Callable[[Replayer, Batch], None] | None = None,
    **settings: Any,
) -> Replayed:
    """Replay `rows` whose answers have `outputs` tokens; `settings` are the mode's."""
    clock = VirtualClock()
    executor = CheckedExecutor(cost, clock)
    records = Records()
    replayer = Replayer(
        workload=Workload(list(rows), list(outputs)),
        executor=executor,
        clock=clock,
        policy=policy_registry[policy]() if isinstance(policy, str) else policy,
        mode=modes[mode](**settings) if isinstance(mode, str) else mode,
        pool=KVPool(blocks, block_size),
        predictor=predictors[predictor]() if isinstance(predictor, str) else predictor,
        records=records,
        limits=limits,
    )
    if check is not None:
        executor.check = lambda batch: check(replayer, batch)
    assert replayer.run()
    replayer.scheduler.check_integrity()
    tables = {
        name: pl.DataFrame(pl.from_arrow(columns.take() or SCHEMAS[name].empty_table()))
        for name, columns in records.items()
    }
    return Replayed(**tables, objects=list(rows), batches=executor.batches)

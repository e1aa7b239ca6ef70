"""A replay in memory, on a virtual clock, for tests: requests in, tables out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from replay.block_keys import name_blocks
from replay.clock import VirtualClock, to_nanosecond
from replay.contract.contents import Contents, answer
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
    contents: Contents | None = None

    def column(self, name: str) -> list[Any]:
        """A column of the requests, in order of the trace."""
        return self.requests.sort("row")[name].to_list()


def request(row: int, arrival: float = 0.0, prompt: int = 1, **fields: Any) -> Request:
    """A request of a test; `max_tokens` is 64 unless given."""
    defaults: dict[str, Any] = {"max_tokens": 64, "request_id": str(row)}
    fields = defaults | fields
    if "priority" in fields:
        fields.setdefault("urgency", fields["priority"])
    return Request(row=row, arrival=arrival, prompt_tokens=prompt, **fields)


class CheckedExecutor(SimulatedExecutor):
    """A simulated executor that keeps what it was given."""

    def __init__(self, cost: CostModel, clock: VirtualClock, **settings: Any) -> None:
        super().__init__(cost, clock, **settings)
        self.batches: list[Batch] = []
        self.check: Callable[[Batch], None] = lambda batch: None
        self.contents: Contents | None = None

    def take(self, batch: Batch) -> None:
        """Look at a batch, and carry it out on the contents of its blocks."""
        self.check(batch)
        self.batches.append(batch)
        if self.contents is not None:
            self.contents.compute(batch)

    def submit(self, batch: Batch) -> None:
        self.take(batch)
        super().submit(batch)


class OverlappingExecutor(CheckedExecutor):
    """One that queues steps as a device does: the next begins when the one before has ended."""

    overlaps = True

    def __init__(self, cost: CostModel, clock: VirtualClock, **settings: Any) -> None:
        super().__init__(cost, clock, **settings)
        self._queue: deque[tuple[float, int]] = deque()
        self._busy_until = 0.0

    def submit(self, batch: Batch) -> None:
        self.take(batch)
        assert len(self._queue) < 2, "no more than the next step is handed over"
        self._busy_until = to_nanosecond(max(self._clock.now(), self._busy_until) + self.seconds(batch))
        self._queue.append((self._busy_until, sum(share.samples for share in batch.shares)))

    def collect(self) -> list[int]:
        end, samples = self._queue.popleft()
        self._clock.sleep_until(end)
        return [0] * samples


def simulate(
    rows: Sequence[Request],
    outputs: Sequence[int],
    *,
    mode: str | Mode = "continuous",
    policy: str | Policy = "fifo",
    blocks: int = 1000,
    block_size: int = 16,
    host_blocks: int = 0,
    prefix_cache: bool = False,
    prompts: Mapping[int, Sequence[int]] | None = None,
    overlap: bool = False,
    open_loop: bool = False,
    verify: bool = False,
    cost: CostModel = UNIT,
    predictor: str | Predictor = "oracle",
    limits: Limits | None = None,
    check: Callable[[Replayer, Batch], None] | None = None,
    turn: Callable[[Replayer, float], None] | None = None,
    **settings: Any,
) -> Replayed:
    """Replay `rows` whose answers have `outputs` tokens; `settings` are the mode's.

    `prompts` are token ids by row; those of the other rows are drawn where there is a prefix cache. With `verify`,
    what is in each block is followed, and every answer must come out as the request alone would get it.
    """
    clock = VirtualClock()
    make = OverlappingExecutor if overlap else CheckedExecutor
    executor = make(cost, clock, prompt_seed=0 if prefix_cache or verify else None)
    records = Records()
    workload = Workload(list(rows), list(outputs), prompts=dict(prompts or {}))
    known = workload.prompts  # where they are all given, none is drawn
    ids = [np.asarray(known[one.row]) for one in rows] if len(known) == len(rows) else executor.prepare(workload)
    if prefix_cache:
        name_blocks(workload.requests, ids, block_size)
    if verify:
        prompts = {row: prompt.tolist() for row, prompt in enumerate(ids)}
        executor.contents = Contents(blocks, host_blocks, block_size, prompts)
    replayer = Replayer(
        workload=workload,
        executor=executor,
        clock=clock,
        policy=policy_registry[policy]() if isinstance(policy, str) else policy,
        mode=modes[mode](**settings) if isinstance(mode, str) else mode,
        pool=KVPool(blocks, block_size, host_blocks=host_blocks, prefix_cache=prefix_cache),
        predictor=predictors[predictor]() if isinstance(predictor, str) else predictor,
        records=records,
        limits=limits,
        open_loop=open_loop,
        watch=None if turn is None else lambda progress: turn(replayer, clock.now()),
    )
    if check is not None:
        executor.check = lambda batch: check(replayer, batch)
    assert replayer.run()
    replayer.scheduler.check_integrity()
    tables = {
        name: pl.DataFrame(pl.from_arrow(columns.take() or SCHEMAS[name].empty_table()))
        for name, columns in records.items()
    }
    if executor.contents is not None and prompts is not None:
        for one in rows:
            alone = answer(prompts[one.row], one.generated)
            assert executor.contents.answers[one.row] == alone, f"row {one.row} did not get its answer"
    return Replayed(**tables, objects=list(rows), batches=executor.batches, contents=executor.contents)

"""The loop of a replay: sleep until something is due, let the scheduler plan, let the executor compute, write it down.

It is the same on the wall clock with a real engine and on a virtual clock with a cost model. Arrivals are absolute
deadlines, so lateness never adds up, and each request's lag is written down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Literal

from replay.arrivals import Arrivals
from replay.clock import Clock
from replay.errors import EngineError
from replay.executors.interface import Batch, Executor
from replay.pool import KVPool
from replay.predictors import Predictor
from replay.records import Records
from replay.request import Request, Workload
from replay.scheduler import Limits, Mode, Policy, Scheduler
from replay.scheduler.rows import write_request
from replay.scheduler.state import State
from replay.stopping import Stop

NAP = 0.25  # seconds after which a sleeping loop reports
PATIENCE = 100  # plans in a row that may evict or reject, and run nobody


class Progress:
    """How far a cell is, for whoever watches. It is read, not told: a turn of the loop costs the same, seen or not.

    It is true while the watcher is called, and goes on changing. `tokens` of answers have been computed by `now`.
    """

    __slots__ = ("_left", "_over", "_state", "now", "requests", "tokens")

    def __init__(self, requests: int, state: State, over: Collection[int]) -> None:
        self.now = 0.0
        self.requests = requests
        self.tokens = 0
        self._state = state
        self._over = over
        self._left: list[Request] = []

    @property
    def ended(self) -> int:
        return len(self._over)

    @property
    def running(self) -> int:
        return len(self._state.resident)

    @property
    def waiting(self) -> int:
        return len(self._state.waiting)

    @property
    def used_blocks(self) -> int:
        return self._state.pool.blocks - self._state.pool.free_blocks

    @property
    def blocks(self) -> int:
        return self._state.pool.blocks

    @property
    def evictions(self) -> int:
        return self._state.evictions

    @property
    def resident(self) -> Collection[Request]:
        """Who runs, to be read and not kept."""
        return self._state.resident.values()

    def leave(self, request: Request) -> None:
        """A request is over."""
        self._left.append(request)

    def take_left(self) -> list[Request]:
        """The requests that the engine was done with since the last call, in the order in which they ended."""
        left, self._left = self._left, []
        return left


class Replayer:
    """One cell: a workload, an engine, a mode and a policy. `run` replays it once.

    Where the executor `overlaps`, the next step is planned and handed over while it computes the one before. Lengths
    are forced, unless a token of `end_ids` ends an answer sooner; nobody knows when it comes, so steps do not overlap
    then. In an `open_loop` no turn of a session waits for the one before.
    """

    def __init__(
        self,
        *,
        workload: Workload,
        executor: Executor,
        clock: Clock,
        policy: Policy,
        mode: Mode,
        pool: KVPool,
        predictor: Predictor,
        records: Records,
        limits: Limits | None = None,
        seed: int = 0,
        stop: Stop | None = None,
        watch: Callable[[Progress], None] | None = None,
        end_ids: Collection[int] = (),
        open_loop: bool = False,
    ) -> None:
        self._clock = clock
        self._executor = executor
        self._records = records
        self._end_ids = end_ids
        self._overlaps = executor.overlaps and not end_ids
        self._lengths = workload.output_tokens
        self._requests = workload.requests
        self._arrivals = Arrivals(workload.requests, open_loop=open_loop)
        self._stop = stop or Stop()
        self._watch = watch
        self._over: set[int] = set()  # rows that are written
        self.scheduler = Scheduler(
            policy=policy,
            mode=mode,
            pool=pool,
            output_tokens=workload.output_tokens,
            predictor=predictor,
            cost=executor.cost,
            records=records,
            limits=limits,
            max_context=executor.max_context,
            seed=seed,
            on_end=self._follow_up,
        )
        self._progress = Progress(len(self._requests), self.scheduler.state, self._over)

    def run(self) -> bool:
        """Replay until everybody is served, or until `stop` is set: then False, and the rest is `unfinished`.

        Raises EngineError when requests wait that will never be served, because the policy leaves the engine idle.
        """
        clock, scheduler = self._clock, self.scheduler
        free_at = 0.0  # since when nothing has kept the loop from taking arrivals in
        fruitless = 0  # plans in a row that evicted or rejected, and ran nobody
        under_way: tuple[Batch, float] | None = None  # a step that the executor computes, and when it got it
        clock.start()
        while not self._stop.is_set():
            now = clock.now()
            batch = None
            if under_way is None or not scheduler.times_out(now):
                arrived = self._arrivals.take(now)
                for request in arrived:
                    request.lag = now - max(request.due, free_at)
                batch = scheduler.plan(now, arrived, more=self._more)
            if batch is not None or under_way is not None:
                fruitless = 0
                before, under_way = under_way, self._submit(batch) if batch is not None else None
                if before is not None:
                    self._collect(*before)
                if under_way is not None and not self._overlaps:
                    self._collect(*under_way)
                    under_way = None
                free_at = clock.now()
            elif scheduler.idle and self._arrivals.exhausted:
                assert len(self._over) == len(self._requests), "every request has exactly one row"
                self._report(now)
                return True
            else:
                fruitless = fruitless + 1 if scheduler.changed else 0
                if not 0 < fruitless < PATIENCE:  # after an eviction or a rejection the next plan finds more room
                    self._sleep_until(self._next_instant(now))
            self._report(now)
        if under_way is not None:
            self._collect(*under_way)
        self.abandon("the replay was stopped")
        return False

    def abandon(self, reason: str) -> None:
        """Write a row for everybody who has none, as `unfinished`: nothing that was measured is lost."""
        self.scheduler.abandon()
        for request in self._requests:
            if request.row not in self._over:
                self._set_aside(request, "unfinished", reason)

    def _more(self) -> bool:
        """Whether a further request can come before one of those who are here finishes."""
        return self._arrivals.next_due is not None or self.scheduler.finishing

    def _submit(self, batch: Batch) -> tuple[Batch, float]:
        """Hand a batch over, and count what it computes; with the instant at which it was handed over."""
        launched = self._clock.now()
        self._executor.submit(batch)
        self.scheduler.advance(batch)
        return batch, launched

    def _collect(self, batch: Batch, launched: float) -> None:
        """Wait for the oldest step under way, and write it down."""
        ids = self._executor.collect()
        end = self._clock.now()
        self._progress.tokens += len(ids)
        stopped: set[int] = set()
        if self._end_ids:
            sampled = (share.request.row for share in batch.shares if share.samples)
            stopped = {row for row, token in zip(sampled, ids, strict=True) if token in self._end_ids}
        self.scheduler.complete(batch, launched, end, stopped)

    def _sleep_until(self, instant: float) -> None:
        """Sleep, and report now and then, so that rows reach the disk in a long gap too. A virtual clock has none."""
        nap = math.inf if self._clock.zero_unix is None else NAP
        while (now := self._clock.now()) < instant and not self._stop.is_set():
            self._clock.sleep_until(min(instant, now + nap))
            self._report(self._clock.now())

    def _next_instant(self, now: float) -> float:
        """When there is something to do again; an arrival that has become due meanwhile is at once."""
        instants = [
            instant for instant in (self._arrivals.next_due, self.scheduler.next_wake(now)) if instant is not None
        ]
        if not instants:
            waiting = next(iter(self.scheduler.state.waiting.values()), None)
            head = f"request {waiting.request_id!r} (row {waiting.row})" if waiting else "a resident request"
            raise EngineError(
                f"no progress: {head} is never given tokens, nothing else is to come, and the policy "
                f"{type(self.scheduler.policy).__name__} names no time to look again"
            )
        return min(instants)

    def _follow_up(self, request: Request, now: float) -> None:
        """A request is over: count it, and let its session go on or skip what is left of it."""
        self._over.add(request.row)
        if self._watch is not None:
            self._progress.leave(request)
        for skipped in self._arrivals.ended(request, now):
            turn = "an earlier turn" if request.turn is None else f"turn {request.turn}"
            how = str(request.status).replace("_", " ")
            reason = f"{turn} of its session (row {request.row}) was {how}"
            self._set_aside(skipped, "skipped", reason)

    def _set_aside(self, request: Request, status: Literal["skipped", "unfinished"], reason: str) -> None:
        """The row of a request that got no end from the scheduler, and so has no instant at which it ended."""
        self._over.add(request.row)
        request.state, request.status, request.reason = "ended", status, reason
        request.ended = request.finished = None
        mode = self.scheduler.mode
        write_request(self._records, request, self._lengths[request.row], self._executor.cost, mode)

    def _report(self, now: float) -> None:
        if self._watch is not None:
            self._progress.now = now
            self._watch(self._progress)

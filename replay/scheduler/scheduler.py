"""The scheduler: takes arrivals in, lets the policy plan a step, and keeps the books when the step is done.

It never reads a clock and never computes a token: time comes as an argument, and the executor is somebody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from random import Random

from replay.executors.interface import Batch, CostModel, Padding
from replay.pool import KVPool
from replay.predictors import Predictor
from replay.records import Records
from replay.request import Request, Status
from replay.scheduler.books import Books
from replay.scheduler.limits import Limits, TimeOuts
from replay.scheduler.modes import Mode
from replay.scheduler.policy import Policy
from replay.scheduler.state import State
from replay.scheduler.step import Step


class Scheduler:
    """One cell's scheduler. `output_tokens[row]` is the length to force; `on_end` hears of each request that is over.

    Each turn of the loop: `plan` gives the batch of the next step (or None), `advance` counts it once the executor has
    it, `complete` takes its results. One step may be planned between the last two.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        mode: Mode,
        pool: KVPool,
        output_tokens: Sequence[int],
        predictor: Predictor,
        cost: CostModel,
        records: Records,
        limits: Limits | None = None,
        max_context: int | None = None,
        seed: int = 0,
        on_end: Callable[[Request, float], None] | None = None,
    ) -> None:
        self.policy = policy
        self.mode = mode
        self.state = State(pool)
        self._output_tokens = output_tokens
        self._predictor = predictor
        self._cost = cost
        self._limits = limits or Limits()
        self._time_outs = TimeOuts(self._limits)
        self._max_context = max_context
        self._random = Random(seed)
        self._listeners = policy.listeners()
        self._books = Books(self.state, mode, self._listeners, predictor, output_tokens, cost, records, on_end)
        self._step: Step | None = None
        self._unwritten = 0  # evictions by plans that ran nobody, and so have no row
        self._batch_prompt = 0  # padded modes: the longest prompt of the batch at hand, and its steps so far
        self._batch_steps = 0
        predictor.start(output_tokens, seed)

    @property
    def changed(self) -> bool:
        """Whether somebody was evicted or rejected in the last plan: then the next one finds more room."""
        return self._step is not None and bool(self._step.evicted or self._step.rejected)

    @property
    def finishing(self) -> bool:
        """Whether a step is under way that ends a request, so that its session may go on."""
        return self._books.finishing

    @property
    def idle(self) -> bool:
        """Whether nobody waits and nobody is resident."""
        return not self.state.waiting and not self.state.resident

    def plan(
        self, now: float, arrivals: Iterable[Request] = (), *, more: Callable[[], bool] = lambda: False
    ) -> Batch | None:
        """The batch of the step that begins at `now`, or None when nothing is to be computed.

        `more` says whether a further request can come before one of these finishes (what static mode waits for). It is
        asked when those who have run out of time are gone: that may deliver answers, and let sessions go on.
        """
        assert self._books.under_way <= 1, "the step before the last is complete"
        step = self._step = Step(
            self._books.steps,
            now,
            self.state,
            self.mode,
            self.policy,
            self._listeners,
            self._predictor,
            self._cost,
            self._random,
        )
        step.evictions, self._unwritten = self._unwritten, 0
        self._receive(arrivals, step)
        self._expire(step)
        step.closed = False
        step.size = self.mode.size(self.state)
        step.gate = self.mode.opens(self.state, now, size=step.size, more=more())
        self.policy.schedule(step)
        self._run_held_rows(step)
        step.closed = True
        for request in step.rejected:
            self._books.over(request, now, step)
        for request in step.evicted.values():
            self._books.close(request.row, "swapped" if request.swapped else "evicted")
        batch = self._batch(step)
        if batch is None:
            self._unwritten = step.evictions
        return batch

    def advance(self, batch: Batch) -> None:
        """The executor has been given the batch of the last plan: count what it computes, as far as that is known."""
        assert self._step is not None, "a step is planned before it is computed"
        self._books.advance(self._step, batch)

    def complete(self, batch: Batch, launched: float, end: float, stopped: Collection[int] = ()) -> None:
        """The oldest step under way was handed over at `launched`, and its tokens were back at `end`.

        `stopped`: rows whose answers end with this token, before the length to force.
        """
        self._books.complete(batch, launched, end, stopped)

    def cancel(self, request: Request, now: float, status: Status = "cancelled", reason: str | None = None) -> bool:
        """End a request that has arrived, wherever it is; its blocks are given back. False for one that is over.

        False too, and nothing, for one that a step under way has to do with: complete that first. In static and
        dynamic mode the row of a resident one stays in the batch as padding, and its blocks until the batch's end.
        """
        if request.state not in ("waiting", "running") and not request.undelivered:
            return False
        if self._books.concern(request):
            return False
        self.state.end(request, now, status, reason)
        if not self._books.under_way:
            self._books.deliver(now, self._step)
        self._books.over(request, now, self._step)
        return True

    def abandon(self) -> None:
        """The replay stops here: nobody waits or is resident any more. No policy is told, and no row is written.

        Of a step that is under way nothing is known: its tokens do not count.
        """
        for request in self.state.waiting.values():
            self.state.pool.host.release(request.row)
        self.state.waiting.clear()
        for request in list(self.state.resident.values()):
            self.state.leave(request)
        self._books.abandon()

    def times_out(self, now: float) -> bool:
        """Whether somebody has run out of time by `now` with whom a step under way has to do: complete that first."""
        return any(self._books.concern(request) for request in self._time_outs.overdue(now))

    def next_wake(self, now: float) -> float | None:
        """When to look again although nothing arrives: the mode's gate, a time-out, or the policy's wish."""
        instants = (self.mode.wake(self.state), self._time_outs.next(), self.policy.wake(now))
        return min((instant for instant in instants if instant is not None and instant > now), default=None)

    def check_integrity(self) -> None:
        """Raise AssertionError unless every book is balanced; between a plan and the next."""
        self.state.check_integrity(lambda request: self.state.pool.blocks_for(request.computed))

    def _receive(self, arrivals: Iterable[Request], step: Step) -> None:
        for request in arrivals:
            self._expire(step)  # who has run out of time does not fill the queue for who comes
            request.submitted = step.now
            if reason := self._refusal(request):
                self.state.end(request, step.now, "rejected", reason)
                self._books.write(request, step.now)  # the policy never heard of it
                continue
            self.state.enter(request)
            self._time_outs.watch(request)
            for listener in self._listeners:
                listener.on_arrival(request, step)
            self.policy.enqueue(request, step)

    def _refusal(self, request: Request) -> str | None:
        """Why a request is turned away at the door: it can never fit, or the queue is full."""
        pool = self.state.pool
        tokens = request.prompt_tokens + self._output_tokens[request.row]
        if tokens > pool.capacity:
            return f"{tokens} tokens need {pool.blocks_for(tokens)} KV blocks; the pool has {pool.blocks}"
        if self._max_context is not None and tokens > self._max_context:
            return f"{tokens} tokens are more than the model's context of {self._max_context}"
        if len(self.state.waiting) >= self._limits.max_waiting:
            return f"the queue is full: {self._limits.max_waiting} wait"
        return None

    def _expire(self, step: Step) -> None:
        for request, reason in self._time_outs.due(step.now):  # one at a time: who is ended by one is not due again
            assert not self._books.concern(request), "a step is complete before those who run in it are timed out"
            self.cancel(request, step.now, "timed_out", reason)

    def _run_held_rows(self, step: Step) -> None:
        """Static and dynamic: every resident row runs in every step, whatever the policy thinks of it."""
        if self.mode.padded:
            for request in step.running:
                ran = request.row in step.shares or step.run(request)
                assert ran, "a padded batch has its blocks reserved"

    def _batch(self, step: Step) -> Batch | None:
        if not step.shares:
            return None  # what it evicted, and the copies that this takes, go with the next batch
        shares = list(step.shares.values())
        if not self.mode.padded:
            return Batch(shares, None, *self.state.pool.host.take_copies())
        width = max(share.tokens for share in shares)
        if step.admitted:
            self._batch_prompt, self._batch_steps = width, 0
        padding = Padding(len(self.state.resident), width, self._batch_prompt + self._batch_steps)
        self._batch_steps += 1
        return Batch(shares, padding)

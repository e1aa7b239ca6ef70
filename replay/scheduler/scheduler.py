"""The scheduler: takes arrivals in, lets the policy plan a step, and keeps the books when the step is done.

It never reads a clock and never computes a token: time comes as an argument, and the executor is somebody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from replay.executors.interface import Batch, CostModel, Padding
from replay.pool import KVPool
from replay.predictors import Predictor
from replay.records import Records
from replay.request import Request, Status
from replay.scheduler.batch_size import Outcome
from replay.scheduler.limits import Limits, TimeOuts
from replay.scheduler.modes import Mode
from replay.scheduler.policy import Policy
from replay.scheduler.rows import write_request, write_step
from replay.scheduler.spans import Spans, kind_of
from replay.scheduler.state import State
from replay.scheduler.step import Step


class Scheduler:
    """One cell's scheduler. `output_tokens[row]` is the length to force; `on_end` hears of each request that is over.

    Each turn of the loop: `plan` gives the batch of the next step (or None), `complete` takes its results.
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
        self.steps = 0
        self._output_tokens = output_tokens
        self._predictor = predictor
        self._cost = cost
        self._records = records
        self._spans = Spans(records.spans)
        self._limits = limits or Limits()
        self._time_outs = TimeOuts(self._limits)
        self._max_context = max_context
        self._random = Random(seed)
        self._on_end = on_end
        self._step: Step | None = None
        self._batch_prompt = 0  # padded modes: the longest prompt of the batch at hand, and its steps so far
        self._batch_steps = 0
        predictor.start(output_tokens)

    @property
    def changed(self) -> bool:
        """Whether somebody was evicted or rejected in the last plan: then the next one finds more room."""
        return self._step is not None and bool(self._step.evicted or self._step.rejected)

    @property
    def idle(self) -> bool:
        """Whether nobody waits and nobody is resident."""
        return not self.state.waiting and not self.state.resident

    def plan(self, now: float, arrivals: Iterable[Request] = (), *, more: bool = False) -> Batch | None:
        """The batch of the step that begins at `now`, or None when nothing is to be computed.

        `more`: a further request can come before one of these finishes (what static mode waits for).
        """
        step = self._step = Step(
            self.steps, now, self.state, self.mode, self.policy, self._predictor, self._cost, self._random
        )
        self._receive(arrivals, step)
        self._expire(step)
        step.closed = False
        step.size = self.mode.size(self.state)
        step.gate = self.mode.opens(self.state, now, size=step.size, more=more)
        self.policy.schedule(step)
        self._run_held_rows(step)
        step.closed = True
        for request in step.rejected:
            self._over(request, now)
        for row in step.evicted:
            self._spans.close(row, "evicted")
        return self._batch(step)

    def complete(self, batch: Batch, launched: float, end: float) -> None:
        """The step that `plan` gave was handed over at `launched`, and its tokens were back at `end`."""
        step = self._step
        assert step is not None, "a step is completed after it was planned"
        self._note(batch, step, launched, end)
        full = step.bound == "slots" and bool(self.state.waiting)
        self.mode.observe(Outcome(step.now, end, batch.decodes, step.size, len(self.state.resident), full))
        for share in batch.shares:
            request = share.request
            done = share.start + share.tokens
            request.recomputed_tokens += max(0, min(done, request.furthest) - share.start)
            request.furthest = max(done, request.furthest)
            request.computed = done
            if share.samples:
                request.generated += 1
                request.token_times.append(end)
            self.policy.on_tokens(request, share.tokens, int(share.samples), end - step.now, step)
            if request.generated == self._output_tokens[request.row]:
                self.state.end(request, end, "completed")
                self._predictor.observe(request)
        self._deliver(end)
        self.steps += 1

    def cancel(self, request: Request, now: float, status: Status = "cancelled", reason: str | None = None) -> None:
        """End a request that has arrived, wherever it is; between steps only. Its blocks are given back.

        In static and dynamic mode its row stays in the batch as padding, so they are given back at the batch's end.
        """
        if request.state in ("waiting", "running") or request.undelivered:
            self.state.end(request, now, status, reason)
            self._deliver(now)
            self._over(request, now)

    def abandon(self) -> None:
        """The replay stops here: nobody waits or is resident any more. No policy is told, and no row is written."""
        self.state.waiting.clear()
        for request in list(self.state.resident.values()):
            self.state.leave(request)
            self._spans.close(request.row, "unfinished")

    def next_wake(self, now: float) -> float | None:
        """When to look again although nothing arrives: the mode's gate, a time-out, or the policy's wish."""
        instants = (self.mode.wake(self.state), self._time_outs.next(), self.policy.wake(now))
        return min((instant for instant in instants if instant is not None and instant > now), default=None)

    def check_integrity(self) -> None:
        """Raise AssertionError unless every book is balanced; between steps."""
        self.state.check_integrity(lambda request: self.state.pool.blocks_for(request.computed))

    def _receive(self, arrivals: Iterable[Request], step: Step) -> None:
        for request in arrivals:
            self._expire(step)  # who has run out of time does not fill the queue for who comes
            request.submitted = step.now
            if reason := self._refusal(request):
                self.state.end(request, step.now, "rejected", reason)
                self._write(request, step.now)  # the policy never heard of it
                continue
            self.state.enter(request)
            self._time_outs.watch(request)
            self.policy.on_arrival(request, step)
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
        for request, reason in list(self._time_outs.due(step.now)):
            self.cancel(request, step.now, "timed_out", reason)

    def _run_held_rows(self, step: Step) -> None:
        """Static and dynamic: every resident row runs in every step, whatever the policy thinks of it."""
        if self.mode.padded:
            for request in step.running:
                ran = request.row in step.shares or step.run(request)
                assert ran, "a padded batch has its blocks reserved"

    def _batch(self, step: Step) -> Batch | None:
        if not step.shares:
            return None
        shares = list(step.shares.values())
        if not self.mode.padded:
            return Batch(shares)
        width = max(share.tokens for share in shares)
        if step.admitted:
            self._batch_prompt, self._batch_steps = width, 0
        padding = Padding(len(self.state.resident), width, self._batch_prompt + self._batch_steps)
        self._batch_steps += 1
        return Batch(shares, padding)

    def _note(self, batch: Batch, step: Step, launched: float, end: float) -> None:
        """Write down the step, and what each resident did in it."""
        for request in self.state.resident.values():
            share = step.shares.get(request.row)
            self._spans.note(request, kind_of(request, share), batch, step.number, step.now, end)
            if share is not None:
                self._spans.add(request.row, share.tokens, padded=batch.padding is not None)
        write_step(self._records, self.state, step, batch, launched, end)

    def _deliver(self, now: float) -> None:
        """Let complete answers go: each at once, or in padded modes all of a batch when the last of it is complete."""
        resident = self.state.resident.values()
        if self.mode.padded and any(request.state == "running" for request in resident):
            return
        for request in [request for request in resident if request.state == "ended"]:
            self.state.leave(request)
            self._spans.close(request.row, request.status or "ended")
            if request.status == "completed":
                request.finished = now
                request.ended = now
                self._over(request, now)

    def _over(self, request: Request, now: float) -> None:
        """A request is over: its row is written, and the policy hears of it."""
        self._write(request, now)
        if self._step is not None:
            self.policy.on_finish(request, self._step)

    def _write(self, request: Request, now: float) -> None:
        write_request(self._records, request, self._output_tokens[request.row], self._cost, self.mode)
        if self._on_end is not None:
            self._on_end(request, now)

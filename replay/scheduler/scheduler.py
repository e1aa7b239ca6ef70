"""The scheduler: takes arrivals in, lets the policy plan a step, and keeps the books when the step is done.

It never reads a clock and never computes a token: time comes as an argument, and the executor is somebody else's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from random import Random

from replay.executors.interface import Batch, CostModel, Padding
from replay.pool import KVPool
from replay.predictors import Predictor
from replay.records import Records
from replay.request import Request, Status
from replay.scheduler.batch_size import Outcome
from replay.scheduler.flight import Flight
from replay.scheduler.limits import Limits, TimeOuts
from replay.scheduler.modes import Mode
from replay.scheduler.policy import Policy
from replay.scheduler.rows import write_request, write_step
from replay.scheduler.spans import Spans
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
        self._flights: deque[Flight] = deque()  # steps under way, the oldest first
        self._closings: list[tuple[int, str]] = []  # spans that end after the step that is under way
        self._ended = 0.0  # when the last step ended
        self._unwritten = 0  # evictions by plans that ran nobody, and so have no row
        self._batch_prompt = 0  # padded modes: the longest prompt of the batch at hand, and its steps so far
        self._batch_steps = 0
        predictor.start(output_tokens)

    @property
    def changed(self) -> bool:
        """Whether somebody was evicted or rejected in the last plan: then the next one finds more room."""
        return self._step is not None and bool(self._step.evicted or self._step.rejected)

    @property
    def finishing(self) -> bool:
        """Whether a step is under way that ends a request, so that its session may go on."""
        return any(flight.left for flight in self._flights)

    @property
    def idle(self) -> bool:
        """Whether nobody waits and nobody is resident."""
        return not self.state.waiting and not self.state.resident

    def plan(self, now: float, arrivals: Iterable[Request] = (), *, more: bool = False) -> Batch | None:
        """The batch of the step that begins at `now`, or None when nothing is to be computed.

        `more`: a further request can come before one of these finishes (what static mode waits for).
        """
        assert len(self._flights) <= 1, "the step before the last is complete"
        step = self._step = Step(
            self.steps, now, self.state, self.mode, self.policy, self._predictor, self._cost, self._random
        )
        step.evictions, self._unwritten = self._unwritten, 0
        self._receive(arrivals, step)
        self._expire(step)
        step.closed = False
        step.size = self.mode.size(self.state)
        step.gate = self.mode.opens(self.state, now, size=step.size, more=more)
        self.policy.schedule(step)
        self._run_held_rows(step)
        step.closed = True
        for request in step.rejected:
            self._over(request, now, step)
        for request in step.evicted.values():
            self._close(request.row, "swapped" if request.swapped else "evicted")
        batch = self._batch(step)
        if batch is None:
            self._unwritten = step.evictions
        return batch

    def advance(self, batch: Batch) -> None:
        """The executor has been given the batch of the last plan: count what it computes, as far as that is known.

        That is all but the tokens themselves and the instant at which they come, where lengths are forced. So slots
        and blocks of those who reach their length are free for the next plan.
        """
        step = self._step
        assert step is not None, "a step is planned before it is computed"
        flight, size = Flight.of(step, batch, self.state), self.state.pool.block_size
        for share in batch.shares:
            request = share.request
            done = share.start + share.tokens
            request.recomputed_tokens += max(0, min(done, request.furthest) - share.start)
            request.furthest = max(done, request.furthest)
            request.computed = done
            request.generated += share.samples
            if step.caches:
                known = 0 if request.row in step.admitted else share.start  # who joined may have come from host memory
                if done // size > known // size:
                    self.state.name_blocks(request, known, done)
            if request.generated == self._output_tokens[request.row]:
                self.state.complete(request)
                flight.completed.add(request.row)
        flight.left = self._let_go()
        self._flights.append(flight)
        self.steps += 1

    def complete(self, batch: Batch, launched: float, end: float, stopped: Collection[int] = ()) -> None:
        """The oldest step under way was handed over at `launched`, and its tokens were back at `end`.

        `stopped`: rows whose answers end with this token, before the length to force. A step that was handed over
        while the one before was computed counts from the end of that one.
        """
        flight = self._flights.popleft()
        assert flight.batch is batch, "steps are completed in the order in which they were planned"
        step = flight.step
        start, self._ended = max(step.now, self._ended), end
        self._note(flight, start, launched, end)
        full = step.bound == "slots" and flight.waiting > 0
        self.mode.observe(Outcome(end - start, batch.decodes, step.size, len(flight.residents), full))
        for share in batch.shares:
            request = share.request
            if share.samples:
                request.token_times.append(end)
            self.policy.on_tokens(request, share.tokens, int(share.samples), end - start, step)
            if request.row in stopped and request.row not in flight.completed:
                assert not self._flights, "no step was planned on what was not known"
                self.state.complete(request)
                flight.completed.add(request.row)
            if request.row in flight.completed:
                request.ended = end
                self._predictor.observe(request)
        if stopped:
            flight.left += self._let_go()
        self._deliver(flight.left, end, step)
        for row, ending in self._closings:
            self._spans.close(row, ending)
        self._closings.clear()

    def cancel(self, request: Request, now: float, status: Status = "cancelled", reason: str | None = None) -> None:
        """End a request that has arrived, wherever it is. Its blocks are given back.

        One that waits may go at any time, others only while no step is under way. In static and dynamic mode the row
        of a resident one stays in the batch as padding, so its blocks are given back at the batch's end.
        """
        if request.state in ("waiting", "running") or request.undelivered:
            assert request.state == "waiting" or not self._flights, "nobody leaves in the middle of a step"
            self.state.end(request, now, status, reason)
            if not self._flights:
                self._deliver(self._let_go(), now, self._step)
            self._over(request, now, self._step)

    def abandon(self) -> None:
        """The replay stops here: nobody waits or is resident any more. No policy is told, and no row is written.

        Of a step that is under way nothing is known: its tokens do not count.
        """
        for request in self.state.waiting.values():
            self.state.pool.host.release(request.row)
        self.state.waiting.clear()
        for request in list(self.state.resident.values()):
            self.state.leave(request)
        for flight in self._flights:
            for share in flight.batch.shares:
                share.request.generated = len(share.request.token_times)
        self._flights.clear()
        self._closings.clear()
        self._spans.close_all("unfinished")

    def times_out(self, now: float) -> bool:
        """Whether somebody has run out of time by `now`: the next plan ends it, when no step is under way."""
        instant = self._time_outs.next()
        return instant is not None and instant <= now

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

    def _note(self, flight: Flight, start: float, launched: float, end: float) -> None:
        """Write down the step, and what each resident did in it."""
        step, batch = flight.step, flight.batch
        for request, slot, kind in flight.residents:
            self._spans.note(request.row, slot, kind, batch, step.number, start, end)
        for share in batch.shares:
            self._spans.add(share.request.row, share.tokens, padded=batch.padding is not None)
        write_step(self._records, flight, start, launched, end)

    def _close(self, row: int, ending: str) -> None:
        """End a row's span, once the step that is under way has been noted."""
        if self._flights:
            self._closings.append((row, ending))
        else:
            self._spans.close(row, ending)

    def _let_go(self) -> list[Request]:
        """Whose answers are complete give slot and blocks back: each at once, or in padded modes all of a batch when
        the last of it is complete."""
        resident = self.state.resident.values()
        if self.mode.padded and any(request.state == "running" for request in resident):
            return []
        left = [request for request in resident if request.state == "ended"]
        for request in left:
            self.state.leave(request)
        return left

    def _deliver(self, left: list[Request], now: float, step: Step | None) -> None:
        """Who has let go is gone: the complete answers among them are delivered."""
        for request in left:
            self._spans.close(request.row, request.status or "ended")
            if request.status == "completed":
                request.finished = now
                request.ended = now
                self._over(request, now, step)

    def _over(self, request: Request, now: float, step: Step | None) -> None:
        """A request is over: its row is written, and the policy hears of it."""
        self._write(request, now)
        if step is not None:
            self.policy.on_finish(request, step)

    def _write(self, request: Request, now: float) -> None:
        write_request(self._records, request, self._output_tokens[request.row], self._cost, self.mode)
        if self._on_end is not None:
            self._on_end(request, now)

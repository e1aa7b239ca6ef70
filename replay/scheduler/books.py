"""The books of steps under way: what each computes is counted when the executor has it, and written down at its end.

They know what was planned, and decide nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence

from replay.executors.interface import Batch, CostModel
from replay.predictors import Predictor
from replay.records import Records
from replay.request import Request
from replay.scheduler.batch_size import Outcome
from replay.scheduler.flight import Flight
from replay.scheduler.listener import Listener
from replay.scheduler.modes import Mode
from replay.scheduler.rows import write_request, write_step
from replay.scheduler.spans import Spans
from replay.scheduler.state import State
from replay.scheduler.step import Step


class Books:
    """Counts, stamps, rows and spans of one cell. `steps` were handed over so far."""

    def __init__(
        self,
        state: State,
        mode: Mode,
        listeners: Sequence[Listener],
        predictor: Predictor,
        output_tokens: Sequence[int],
        cost: CostModel,
        records: Records,
        on_end: Callable[[Request, float], None] | None,
    ) -> None:
        self.steps = 0
        self._state = state
        self._mode = mode
        self._listeners = listeners
        self._predictor = predictor
        self._output_tokens = output_tokens
        self._cost = cost
        self._records = records
        self._on_end = on_end
        self._spans = Spans(records.spans)
        self._flights: deque[Flight] = deque()  # the oldest first
        self._closings: list[tuple[int, str]] = []  # spans that end after the step that is under way
        self._ended = 0.0  # when the last step ended

    @property
    def under_way(self) -> int:
        """Steps that were handed over and are not complete."""
        return len(self._flights)

    @property
    def finishing(self) -> bool:
        """Whether a step under way ends a request."""
        return any(flight.left for flight in self._flights)

    def concern(self, request: Request) -> bool:
        """Whether a step under way has to do with a request: it computes for it, or for others beside it."""
        if request.state != "waiting":
            return bool(self._flights)
        return any(request.row in flight.step.shares for flight in self._flights)

    def advance(self, step: Step, batch: Batch) -> None:
        """The executor has been given a step's batch: count what it computes, as far as that is known.

        That is all but the tokens themselves and the instant at which they come, where lengths are forced. So slots
        and blocks of those who reach their length are free for the next plan.
        """
        flight, size = Flight.of(step, batch, self._state), self._state.pool.block_size
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
                    self._state.name_blocks(request, known, done)
            if request.generated == self._output_tokens[request.row]:
                self._state.complete(request)
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
        self._mode.observe(Outcome(end - start, batch.decodes, step.size, len(flight.residents), full))
        for share in batch.shares:
            request = share.request
            if share.samples:
                request.token_times.append(end)
            for listener in self._listeners:
                listener.on_tokens(request, share.tokens, int(share.samples), end - start, step)
            if request.row in stopped and request.row not in flight.completed:
                assert not self._flights, "no step was planned on what was not known"
                self._state.complete(request)
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

    def close(self, row: int, ending: str) -> None:
        """End a row's span, once the step that is under way has been noted."""
        if self._flights:
            self._closings.append((row, ending))
        else:
            self._spans.close(row, ending)

    def deliver(self, now: float, step: Step | None) -> None:
        """Let those go who may, and deliver their complete answers."""
        self._deliver(self._let_go(), now, step)

    def over(self, request: Request, now: float, step: Step | None) -> None:
        """A request is over: its row is written, and the policy hears of it."""
        self.write(request, now)
        if step is not None:
            for listener in self._listeners:
                listener.on_finish(request, step)

    def write(self, request: Request, now: float) -> None:
        write_request(self._records, request, self._output_tokens[request.row], self._cost, self._mode)
        if self._on_end is not None:
            self._on_end(request, now)

    def abandon(self) -> None:
        """Nothing is known of steps under way: their tokens do not count. Every span ends here."""
        for flight in self._flights:
            for share in flight.batch.shares:
                share.request.generated = len(share.request.token_times)
        self._flights.clear()
        self._closings.clear()
        self._spans.close_all("unfinished")

    def _note(self, flight: Flight, start: float, launched: float, end: float) -> None:
        """Write down the step, and what each resident did in it."""
        step, batch = flight.step, flight.batch
        for request, slot, kind in flight.residents:
            self._spans.note(request.row, slot, kind, batch, step.number, start, end)
        for share in batch.shares:
            self._spans.add(share.request.row, share.tokens, padded=batch.padding is not None)
        write_step(self._records, flight, start, launched, end)

    def _let_go(self) -> list[Request]:
        """Whose answers are complete give slot and blocks back: each at once, or in padded modes all of a batch when
        the last of it is complete."""
        resident = self._state.resident.values()
        if self._mode.padded and any(request.state == "running" for request in resident):
            return []
        left = [request for request in resident if request.state == "ended"]
        for request in left:
            self._state.leave(request)
        return left

    def _deliver(self, left: list[Request], now: float, step: Step | None) -> None:
        """Who has let go is gone: the complete answers among them are delivered."""
        for request in left:
            self._spans.close(request.row, request.status or "ended")
            if request.status == "completed":
                request.finished = now
                request.ended = now
                self.over(request, now, step)

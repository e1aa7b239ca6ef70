"""How long a request may wait, and how many may: what protects an engine from its queue.

Time-outs are found at step boundaries, in order, without looking at every request.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from replay.clock import to_nanosecond
from replay.request import Request


@dataclass(slots=True, frozen=True)
class Limits:
    """`max_waiting` requests may wait; more are rejected. Seconds count from when a request was due."""

    max_waiting: int = 1024
    queue_timeout: float | None = None  # from due to first admission
    timeout: float | None = None  # from due to the delivery of the answer


class TimeOuts:
    """The instants at which requests run out of time, soonest first."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._heap: list[tuple[float, int, bool, Request]] = []

    def watch(self, request: Request) -> None:
        """Note when `request` will have waited, or stayed, too long."""
        for seconds, queued in ((self._limits.queue_timeout, True), (self._limits.timeout, False)):
            if seconds is not None:
                heapq.heappush(self._heap, (to_nanosecond(request.due + seconds), request.row, queued, request))

    def next(self) -> float | None:
        """The next instant at which a request may have run out of time."""
        while self._heap and not self._concerns(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def overdue(self, now: float) -> Iterator[Request]:
        """Requests that have run out of time by `now`, and are still to be ended; some maybe twice.

        Of the heap only what is due is looked at.
        """
        places = [0]
        while places:
            place = places.pop()
            if place < len(self._heap) and self._heap[place][0] <= now:
                if self._concerns(self._heap[place]):
                    yield self._heap[place][-1]
                places += [2 * place + 1, 2 * place + 2]

    def due(self, now: float) -> Iterator[tuple[Request, str]]:
        """Requests that have run out of time by `now`, with the reason."""
        while (instant := self.next()) is not None and instant <= now:
            _, _, queued, request = heapq.heappop(self._heap)
            seconds = self._limits.queue_timeout if queued else self._limits.timeout
            yield request, f"{'not admitted' if queued else 'not finished'} within {seconds:g} s"

    def _concerns(self, entry: tuple[float, int, bool, Request]) -> bool:
        _, _, queued, request = entry
        if request.state == "ended" and not request.undelivered:
            return False
        return request.admitted is None or not queued

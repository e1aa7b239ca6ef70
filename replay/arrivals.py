"""Which request comes next, and when: in order of arrival, and for closed-loop sessions when the turn before allows it.

A turn is due at the later of its arrival and the end of the turn before plus its think time. If a turn is not
completed, the rest of its session is skipped. In an open loop every turn is due at its arrival, whatever became of the
turn before.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable

from replay.clock import to_nanosecond
from replay.request import Request


class Arrivals:
    """Requests that have not come yet, and those that wait for the turn before them."""

    def __init__(self, requests: Iterable[Request], *, open_loop: bool = False) -> None:
        self._coming: list[tuple[float, int, Request]] = []
        self._later: dict[str, deque[Request]] = {}  # turns of a session that wait for the one before
        self._open: set[str] = set()  # sessions with a turn that is coming or under way
        for request in sorted(requests, key=lambda one: (one.turn or 0, one.arrival, one.row)):
            request.due = request.arrival
            if request.session is None or open_loop:
                self._come(request)
            elif request.session in self._open:
                self._later.setdefault(request.session, deque()).append(request)
            else:
                self._open.add(request.session)
                self._come(request)

    @property
    def next_due(self) -> float | None:
        """When the next request comes that does not wait for another."""
        return self._coming[0][0] if self._coming else None

    @property
    def exhausted(self) -> bool:
        """Whether nobody is left to come, not even when others finish."""
        return not self._coming and not self._later

    def take(self, now: float) -> list[Request]:
        """All that are due by `now`, in order of due time, then row."""
        taken = []
        while self._coming and self._coming[0][0] <= now:
            taken.append(heapq.heappop(self._coming)[-1])
        return taken

    def ended(self, request: Request, now: float) -> list[Request]:
        """`request` is over at `now`: its session goes on, or is given up. Returns the turns that are skipped."""
        if request.session is None or request.session not in self._later:
            return []
        if request.status != "completed":
            return list(self._later.pop(request.session))
        turns = self._later[request.session]
        following = turns.popleft()
        if not turns:
            del self._later[request.session]
        following.due = to_nanosecond(max(following.arrival, now + following.think_time))
        self._come(following)
        return []

    def _come(self, request: Request) -> None:
        heapq.heappush(self._coming, (request.due, request.row, request))

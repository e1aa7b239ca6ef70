"""Who waits, who is resident, and who holds which slot and which blocks.

It keeps the books and their invariants; it decides nothing.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable

from replay.pool import KVPool
from replay.request import Request, Status


class State:
    """The requests of one engine, by row. `resident` is in order of admission; some may have ended and be held."""

    def __init__(self, pool: KVPool) -> None:
        self.pool = pool
        self.waiting: dict[int, Request] = {}
        self.resident: dict[int, Request] = {}
        self.active: Counter[str | None] = Counter()  # resident requests of each user
        self._free_slots: list[int] = []
        self._slots = 0
        self._admissions = 0

    def enter(self, request: Request) -> None:
        """A request that has arrived begins to wait."""
        request.state = "waiting"
        self.waiting[request.row] = request

    def admit(self, request: Request, now: float) -> None:
        """A waiting request becomes resident: it takes the lowest free slot. Its blocks are taken by the caller."""
        del self.waiting[request.row]
        if not self._free_slots:
            self._free_slots.append(self._slots)
            self._slots += 1
        request.slot = heapq.heappop(self._free_slots)
        request.sequence = self._admissions
        self._admissions += 1
        request.state = "running"
        if request.admitted is None:
            request.admitted = now
        self.resident[request.row] = request
        self.active[request.user] += 1

    def evict(self, request: Request) -> None:
        """A resident request loses its blocks and its slot and waits again: all that it had is to be computed again."""
        self.leave(request)
        request.computed = 0
        self.enter(request)

    def end(self, request: Request, now: float, status: Status, reason: str | None = None) -> None:
        """A request is over, however; a resident one keeps its slot and blocks until it leaves."""
        self.waiting.pop(request.row, None)
        request.state = "ended"
        request.status = status
        request.reason = reason
        request.ended = now

    def leave(self, request: Request) -> None:
        """A resident request gives its slot and its blocks back."""
        del self.resident[request.row]
        self.active[request.user] -= 1
        if not self.active[request.user]:
            del self.active[request.user]
        self.pool.release(request.row)
        assert request.slot is not None, "a resident request holds a slot"
        heapq.heappush(self._free_slots, request.slot)
        request.slot = None

    def check_integrity(self, blocks_needed: Callable[[Request], int]) -> None:
        """Raise AssertionError unless every slot and block is held once, by a resident, and covers what it computed."""
        self.pool.check_integrity()
        assert not self.waiting.keys() & self.resident.keys(), "a request both waits and runs"
        assert self.pool.tables.keys() <= self.resident.keys(), "blocks are held by a request that is not resident"
        slots = [request.slot for request in self.resident.values() if request.slot is not None]
        assert sorted([*slots, *self._free_slots]) == list(range(self._slots)), "a slot was lost or given out twice"
        assert sum(self.active.values()) == len(self.resident), "the users' active requests do not add up"
        for request in self.waiting.values():
            assert request.state == "waiting", "a request waits that does not"
            assert request.computed == 0, "a waiting request holds nothing"
        for request in self.resident.values():
            held = len(self.pool.tables.get(request.row, ()))
            assert held >= blocks_needed(request), "a request computed more than its blocks hold"

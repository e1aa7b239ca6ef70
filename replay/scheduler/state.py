"""Who waits, who is resident, and who holds which slot and which blocks.

It keeps the books and their invariants; it decides nothing.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable

from replay.pool import Key, KVPool
from replay.request import Request, Status


class State:
    """The requests of one engine, by row. `resident` is in order of admission; some may have ended and be held."""

    def __init__(self, pool: KVPool) -> None:
        self.pool = pool
        self.waiting: dict[int, Request] = {}
        self.resident: dict[int, Request] = {}
        self.active: Counter[str | None] = Counter()  # resident requests of each user
        self.evictions = 0
        self._free_slots: list[int] = []
        self._slots = 0
        self._admissions = 0

    def enter(self, request: Request) -> None:
        """A request that has arrived begins to wait."""
        request.state = "waiting"
        self.waiting[request.row] = request

    def admit(self, request: Request, now: float, cached: int | None = None) -> None:
        """A waiting request becomes resident: it takes the lowest free slot. Its blocks are taken by the caller.

        `cached`: tokens that they hold already, shared with others or left behind; None where no cache is used. One
        that was swapped out has its tokens on their way back.
        """
        del self.waiting[request.row]
        if not self._free_slots:
            self._free_slots.append(self._slots)
            self._slots += 1
        request.slot = heapq.heappop(self._free_slots)
        request.sequence = self._admissions
        self._admissions += 1
        request.state = "running"
        if request.swapped:
            request.swapped = False
            self.pool.host.swap_in(request.row, self.pool.tables[request.row])
        else:
            request.computed = cached or 0
        if request.admitted is None:
            request.admitted = now
            request.cached_tokens = cached
        self.resident[request.row] = request
        self.active[request.user] += 1

    def evict(self, request: Request, *, swap: bool) -> None:
        """A resident request loses its blocks and its slot and waits again.

        With `swap` its tokens stay in host memory, where there must be room; otherwise all are to be computed again.
        """
        pool = self.pool
        self.evictions += 1
        if swap:
            if not pool.host.stay(request.row):  # one that was on its way back leaves its copy where it is
                copied = pool.host.swap_out(request.row, pool.tables[request.row][: pool.blocks_for(request.computed)])
                assert copied, "there is room for all that is swapped out"
            request.swapped = True
        else:
            pool.host.stay(request.row)
            pool.host.release(request.row)
            request.computed = 0
        self.leave(request)
        self.enter(request)

    def can_swap(self, request: Request) -> bool:
        """Whether host memory has room for all computed blocks of a resident request."""
        return self.pool.blocks_for(request.computed) <= self.pool.host.free_blocks

    def returns(self, request: Request) -> bool:
        """Whether a resident request was swapped in by the step that is planned, so that host memory holds it still."""
        return request.row in self.pool.host.tables

    def cached(self, request: Request) -> list[int]:
        """The blocks that hold the first of a waiting request's tokens. Its last is not looked for: it is computed."""
        return self.pool.find(key(request, index) for index in range((request.context - 1) // self.pool.block_size))

    def name_blocks(self, request: Request, start: int, end: int) -> None:
        """A resident request's tokens from `start` to `end` are computed: let the blocks that they fill be found."""
        size = self.pool.block_size
        for index in range(start // size, end // size):
            self.pool.name(request.row, index, key(request, index))

    def end(self, request: Request, now: float, status: Status, reason: str | None = None) -> None:
        """A request is over, however; a resident one keeps its slot and blocks until it leaves."""
        if self.waiting.pop(request.row, None) is not None:
            self.pool.host.release(request.row)
            request.swapped = False
        request.state = "ended"
        request.status = status
        request.reason = reason
        request.ended = now

    def complete(self, request: Request) -> None:
        """A resident request has its whole answer, as far as counting goes: when it came is written down later."""
        request.state = "ended"
        request.status = "completed"

    def leave(self, request: Request) -> None:
        """A resident request gives its slot and its blocks back."""
        del self.resident[request.row]
        self.active[request.user] -= 1
        if not self.active[request.user]:
            del self.active[request.user]
        # The blocks with tokens of an answer are nobody else's: once it is over, nobody looks for them.
        self.pool.release(request.row, len(request.block_keys) if request.state == "ended" else None)
        assert request.slot is not None, "a resident request holds a slot"
        heapq.heappush(self._free_slots, request.slot)
        request.slot = None

    def check_integrity(self, blocks_needed: Callable[[Request], int]) -> None:
        """Raise AssertionError unless every slot and block is held once, by a resident, and covers what it computed."""
        self.pool.check_integrity()
        assert not self.waiting.keys() & self.resident.keys(), "a request both waits and runs"
        assert self.pool.tables.keys() <= self.resident.keys(), "blocks are held by a request that is not resident"
        assert self.pool.host.tables.keys() <= self.waiting.keys(), "host blocks are held by one that does not wait"
        slots = [request.slot for request in self.resident.values() if request.slot is not None]
        assert sorted([*slots, *self._free_slots]) == list(range(self._slots)), "a slot was lost or given out twice"
        assert sum(self.active.values()) == len(self.resident), "the users' active requests do not add up"
        for request in self.waiting.values():
            assert request.state == "waiting", "a request waits that does not"
            kept = self.pool.host.tables.get(request.row, ())
            assert request.swapped == bool(kept), "a request is swapped out if host memory holds its tokens"
            assert blocks_needed(request) == len(kept), "a waiting request holds nothing but what was swapped out"
        for request in self.resident.values():
            held = len(self.pool.tables.get(request.row, ()))
            assert held >= blocks_needed(request), "a request computed more than its blocks hold"


def key(request: Request, index: int) -> Key:
    """What its block `index` is called when it is full: one with tokens of its answer is nobody else's."""
    return request.block_keys[index] if index < len(request.block_keys) else (request.row, index)

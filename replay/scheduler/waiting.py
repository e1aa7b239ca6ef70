"""A heap of waiting requests: the best is at hand at once, however many wait.

It holds keys that were fixed when a request began to wait. Entries of requests that wait no longer are dropped when
they come to the top, so nobody need tell the heap.
"""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

from replay.request import Request

Key = TypeVar("Key", float, tuple[float, ...])


class WaitingHeap(Generic[Key]):
    """Requests by key, the smallest first; then by when they were due, then by row."""

    def __init__(self) -> None:
        self._heap: list[tuple[Key, float, int]] = []
        self._entries: dict[
            int, tuple[tuple[Key, float, int], Request]
        ] = {}  # the newest of each row; older ones are dropped
        self._taken: list[tuple[Key, float, int]] = []

    def push(self, request: Request, key: Key) -> None:
        """Let `request` wait under `key`, in place of any key that it had before."""
        entry = (key, request.due, request.row)
        known = self._entries.get(request.row)
        if known is None or known[0] != entry:
            self._entries[request.row] = (entry, request)
            heapq.heappush(self._heap, entry)
            if len(self._heap) > 64 + 2 * len(self._entries):  # keys that move leave entries behind
                self._heap = [kept for kept in set(self._heap) if self._waits(kept)]
                heapq.heapify(self._heap)

    def first(self) -> Request | None:
        """The first request that still waits and was not taken."""
        while self._heap:
            entry = self._heap[0]
            if self._waits(entry):
                return self._entries[entry[-1]][1]
            heapq.heappop(self._heap)
        return None

    def take(self) -> tuple[tuple[Key, float, int], Request] | None:
        """The first request with its key, when it was due and its row; not met again until `restore`."""
        request = self.first()
        if request is None:
            return None
        entry = heapq.heappop(self._heap)
        while self._heap and self._heap[0] == entry:
            heapq.heappop(self._heap)  # it came back to a key that it had before, and whose entry was left
        self._taken.append(entry)
        return entry, request

    def restore(self) -> None:
        """Take back all that was taken and still waits, each in its place."""
        for entry in self._taken:
            if self._waits(entry):
                heapq.heappush(self._heap, entry)
        self._taken.clear()

    def _waits(self, entry: tuple[Key, float, int]) -> bool:
        """Whether an entry is its request's newest, and that waits; if it does not, the entry is forgotten."""
        newest = self._entries.get(entry[-1])
        if newest is None or newest[0] != entry:
            return False
        if newest[1].state == "waiting":
            return True
        del self._entries[entry[-1]]
        return False

"""A heap of waiting requests: the best is at hand at once, however many wait.

It holds keys that were fixed when a request began to wait. Entries of requests that wait no longer are dropped when
they come to the top, so nobody need tell the heap.
"""

from __future__ import annotations

import heapq

from replay.request import Request


class WaitingHeap:
    """Requests by key, then by when they were due, then by row."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, float, int]] = []
        self._requests: dict[int, Request] = {}
        self._aside: list[tuple[float, float, int]] = []

    def push(self, request: Request, key: float) -> None:
        """Let `request` wait under `key`; one that is in the heap already keeps its place."""
        if request.row not in self._requests:
            self._requests[request.row] = request
            heapq.heappush(self._heap, (key, request.due, request.row))

    def head(self) -> Request | None:
        """The first request that still waits and is not set aside."""
        while self._heap:
            request = self._requests[self._heap[0][-1]]
            if request.state == "waiting":
                return request
            heapq.heappop(self._heap)
            del self._requests[request.row]
        return None

    def set_aside(self) -> None:
        """Pass the head over, until `restore`."""
        self._aside.append(heapq.heappop(self._heap))

    def restore(self) -> None:
        """Take back all that was set aside, each in its place."""
        for entry in self._aside:
            heapq.heappush(self._heap, entry)
        self._aside.clear()

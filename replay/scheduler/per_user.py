"""`PerUser`: waiting requests user by user, for policies that are fair between users.

A step costs as much as there are users of whom something happened since the last: not as many as there are users.
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from replay.request import Request
from replay.scheduler.listener import Listener
from replay.scheduler.ordered import Ordered
from replay.scheduler.step import Step
from replay.scheduler.waiting import WaitingHeap

Rank = tuple[float, float, int, int, str | None]  # key, due, row, version, user


class Touched(Listener):
    """The users of whom something happened, in order."""

    def __init__(self) -> None:
        self.users: dict[str | None, None] = {}

    def on_admit(self, request: Request, step: Step) -> None:
        self.users[request.user] = None

    def on_tokens(self, request: Request, tokens: int, new: int, seconds: float, step: Step) -> None:
        self.users[request.user] = None

    def on_finish(self, request: Request, step: Step) -> None:
        self.users[request.user] = None


@dataclass
class PerUser(Ordered):
    """Waiting requests user by user: the user with the smallest `user_key` first, of that user who was due first.

    A user's key may change when one of its requests arrives, is admitted, gets tokens, is evicted or ends. Where it
    changes for another reason, say `touch(user)`.
    """

    _queues: dict[str | None, WaitingHeap[float]] = field(
        default_factory=lambda: defaultdict(WaitingHeap[float]), init=False, repr=False
    )
    _ranks: list[Rank] = field(default_factory=list, init=False, repr=False)  # a heap; of a user the newest counts
    _versions: dict[str | None, int] = field(default_factory=dict, init=False, repr=False)  # of users in the heap
    _version: int = field(default=0, init=False, repr=False)
    _touched: Touched = field(default_factory=Touched, init=False, repr=False)
    _passed: dict[str | None, None] = field(
        default_factory=dict, init=False, repr=False
    )  # with requests that were taken

    @abstractmethod
    def user_key(self, user: str | None, step: Step) -> float:
        """Which user is next: the smallest."""

    def touch(self, user: str | None) -> None:
        """A user's key may have changed."""
        self._touched.users[user] = None

    def waits(self, user: str | None) -> bool:
        """Whether a request of `user` waits; in `on_arrival` and `on_evict`, another one."""
        self._restore()
        return user in self._queues and self._queues[user].first() is not None

    def head(self, user: str | None) -> Request:
        """In `user_key`, the request of `user` that is next."""
        head = self._queues[user].first()
        assert head is not None, "a ranked user has a request that waits"
        return head

    def next_user(self, step: Step) -> tuple[str | None] | None:
        """The waiting user with the smallest key, or None when nobody waits."""
        self._restore()
        rank = self._first(step)
        return None if rank is None else (rank[-1],)

    def schedule(self, step: Step) -> None:
        self._restore()  # who was admitted is forgotten before it may be evicted, and its queue asked about
        super().schedule(step)

    def order(self, step: Step) -> Iterator[Request]:
        self._restore()
        while (rank := self._first(step)) is not None:
            user = rank[-1]
            taken = self._queues[user].take()
            assert taken is not None, "a ranked user has a request that waits"
            self._passed[user] = None
            self.touch(user)
            if taken[1].row not in step.evicted:
                yield taken[1]

    def enqueue(self, request: Request, step: Step) -> None:
        self._queues[request.user].push(request, self.key(request, step))
        self.touch(request.user)

    def listeners(self) -> Sequence[Listener]:
        return (*super().listeners(), self._touched)

    def _first(self, step: Step) -> Rank | None:
        """The rank of the next user, each looked at again who was touched."""
        for user in self._touched.users:
            self._rank(user, step)
        self._touched.users.clear()
        while self._ranks and self._versions.get(self._ranks[0][-1]) != self._ranks[0][-2]:
            heapq.heappop(self._ranks)
        return self._ranks[0] if self._ranks else None

    def _rank(self, user: str | None, step: Step) -> None:
        """Put a user where its key and its next request belong; one without a request is forgotten."""
        head = self._queues[user].first() if user in self._queues else None
        if head is None:
            self._versions.pop(user, None)
            if user not in self._passed:
                self._queues.pop(user, None)
            return
        self._version += 1
        self._versions[user] = self._version
        heapq.heappush(self._ranks, (self.user_key(user, step), head.due, head.row, self._version, user))
        if len(self._ranks) > 64 + 2 * len(self._versions):
            self._ranks = [rank for rank in self._ranks if self._versions.get(rank[-1]) == rank[-2]]
            heapq.heapify(self._ranks)

    def _restore(self) -> None:
        for user in self._passed:
            self._queues[user].restore()
            self.touch(user)
        self._passed.clear()

"""What a policy is, and the base classes that make most of them a few lines.

A policy decides whose turn it is: order, admission, pausing, eviction. It does not decide when the batch is open
(the mode does) nor what fits (the step does).
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from replay.errors import ExperimentError
from replay.registry import Registry
from replay.request import Request
from replay.scheduler.step import Step
from replay.scheduler.waiting import WaitingHeap

policies: Registry[type[Policy]] = Registry("policy")
Class = TypeVar("Class", bound="type[Policy]")


def policy(name: str) -> Callable[[Class], Class]:
    """Register a policy: `@policy("mine")` above `@dataclass` above the class, whose docstring says its rule.

    Raises ExperimentError for a class that is no dataclass (its options would be lost), or has no docstring.
    """

    def keep(entry: Class) -> Class:
        if "__dataclass_params__" not in entry.__dict__:
            raise ExperimentError(f"policy {name!r}: put @dataclass between @policy and class {entry.__name__}")
        if not entry.__doc__ or entry.__doc__.startswith(f"{entry.__name__}("):  # what @dataclass writes of itself
            raise ExperimentError(f"policy {name!r}: class {entry.__name__} needs a docstring that says its rule")
        return policies.register(name)(entry)

    return keep


class Policy(ABC):
    """One required method, and events that a policy may listen to.

    A policy is a dataclass: its fields are its options in an experiment. One object serves one cell, so it may keep
    notes; what it may know is in the requests and the step. The docstring's first line is the rule, in one sentence.
    """

    @abstractmethod
    def schedule(self, step: Step) -> None:
        """Decide this step: call `step.run`, `step.evict` and `step.reject` as you like, in any order."""

    def on_arrival(self, request: Request, step: Step) -> None:
        """`request` has begun to wait."""

    def on_admit(self, request: Request, step: Step) -> None:
        """`request` has become resident; again after an eviction (`request.evictions` tells)."""

    def on_tokens(self, request: Request, tokens: int, new: int, seconds: float, step: Step) -> None:
        """The step computed `tokens` tokens of `request` in `seconds`; `new` is 1 if the answer grew."""

    def on_evict(self, request: Request, step: Step) -> None:
        """`request` has lost its blocks and waits again."""

    def on_finish(self, request: Request, step: Step) -> None:
        """`request` is over; `request.status` says how."""

    def enqueue(self, request: Request, step: Step) -> None:
        """For base classes that keep a queue: `request` waits, after an arrival or an eviction and their events."""

    def wake(self, now: float) -> float | None:
        """When to look again although nothing happens: for policies that leave the engine idle on purpose."""
        return None


@dataclass
class Ordered(Policy):
    """Running requests first, evicting when blocks run out; then waiting ones in order, until one does not fit.

    `key` is *static* by default: fixed when the request begins to wait and kept in a heap, so that 100,000 waiting
    requests cost no time. Set `dynamic` where it changes while they wait: then all are sorted at every step.
    Ties break by when the request was due, then by row.
    """

    dynamic: ClassVar[bool] = False
    bypass: ClassVar[int] = 0  # waiting requests that may be skipped in a step because they do not fit
    decodes_first: ClassVar[bool] = True  # so that no prompt's chunk stops a running decode

    _queue: WaitingHeap = field(default_factory=WaitingHeap, init=False, repr=False)

    def key(self, request: Request, step: Step) -> float:
        """Who waits first: the smallest. First come, first served unless overridden."""
        return request.due

    def run_key(self, request: Request, step: Step) -> tuple[float, ...]:
        """Which running request is the most entitled to go on: the longest resident unless overridden."""
        return (request.sequence,)

    def victim(self, request: Request, step: Step) -> Request:
        """Who is evicted so that `request` can go on: the last by `run_key`, which may be `request` itself."""
        return max(step.running, key=lambda running: self.run_key(running, step))

    def order(self, step: Step) -> Iterator[Request]:
        """Waiting requests by `key`. A generator: it is asked for the next one after each admission or refusal."""
        if self.dynamic:
            rank = {request.row: (self.key(request, step), request.due, request.row) for request in step.waiting}
            yield from sorted(step.waiting, key=lambda request: rank[request.row])
            return
        self._queue.restore()
        while request := self._queue.head():
            if request.row not in step.evicted:
                yield request
            if request.state == "waiting":
                self._queue.set_aside()

    def schedule(self, step: Step) -> None:
        running = sorted(step.running, key=lambda one: self.run_key(one, step))
        if self.decodes_first:
            running.sort(key=lambda one: one.prefilling)
        for request in running:
            self._keep_running(request, step)
        if step.evicted and step.shares:
            return  # blocks are short: whoever joins now is evicted next
        if not step.admits():
            return
        skipped = 0
        for request in self.order(step):
            if not step.run(request):
                skipped += 1
                if skipped > self.bypass:
                    break

    def _keep_running(self, request: Request, step: Step) -> None:
        while request.state == "running" and not step.run(request):
            if step.refusal != "blocks":
                return  # out of budget is not out of memory: it is paused
            if not step.evict(self.victim(request, step)):
                return

    def enqueue(self, request: Request, step: Step) -> None:
        if not self.dynamic:
            self._queue.push(request, self.key(request, step))


@dataclass
class PerUser(Ordered):
    """Waiting requests user by user: the user with the smallest `user_key` first, of that user who was due first."""

    _queues: dict[str | None, WaitingHeap] = field(
        default_factory=lambda: defaultdict(WaitingHeap), init=False, repr=False
    )

    @abstractmethod
    def user_key(self, user: str | None, step: Step) -> float:
        """Which user is next: the smallest. Within a step only the key of the user who was admitted may move."""

    def order(self, step: Step) -> Iterator[Request]:
        ranks: list[tuple[float, float, int, str | None]] = []
        for user, queue in list(self._queues.items()):
            queue.restore()
            if not self._rank(user, step, ranks):
                del self._queues[user]
        while ranks:
            user = heapq.heappop(ranks)[-1]
            queue = self._queues[user]
            if (request := queue.head()) is None:
                continue
            if request.row not in step.evicted:
                yield request
            if request.state == "waiting":
                queue.set_aside()
            self._rank(user, step, ranks)

    def _rank(self, user: str | None, step: Step, ranks: list[tuple[float, float, int, str | None]]) -> bool:
        """Put a user's next request among `ranks`; False when there is none."""
        head = self._queues[user].head()
        if head is not None:
            heapq.heappush(ranks, (self.user_key(user, step), head.due, head.row, user))
        return head is not None

    def enqueue(self, request: Request, step: Step) -> None:
        self._queues[request.user].push(request, self.key(request, step))

"""What a policy is, and the base classes that make most of them a few lines.

A policy decides whose turn it is: order, admission, pausing, eviction. It does not decide when the batch is open
(the mode does) nor what fits (the step does).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from replay.registry import Registry
from replay.request import Request
from replay.scheduler.step import Step
from replay.scheduler.waiting import WaitingHeap

policies: Registry[type[Policy]] = Registry("policy")
policy = policies.register


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

    _queue: WaitingHeap = field(default_factory=WaitingHeap, init=False, repr=False)

    def key(self, request: Request, step: Step) -> float:
        """Who waits first: the smallest. First come, first served unless overridden."""
        return request.due

    def run_key(self, request: Request, step: Step) -> tuple[float, ...]:
        """Which running request gets its tokens first among decodes, then among prompts: the longest resident."""
        return (request.sequence,)

    def victim(self, request: Request, step: Step) -> Request:
        """Who is evicted so that `request` can go on: the last in running order, which may be `request` itself."""
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
        for request in sorted(step.running, key=lambda running: (running.prefilling, *self.run_key(running, step))):
            self._keep_running(request, step)  # decodes come first, so that no prompt's chunk stops one
        if step.evicted and step.shares:
            return  # blocks are short: whoever joins now is evicted next
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

    def on_arrival(self, request: Request, step: Step) -> None:
        self._enqueue(request, step)

    def on_evict(self, request: Request, step: Step) -> None:
        self._enqueue(request, step)

    def _enqueue(self, request: Request, step: Step) -> None:
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
        """Which user is next: the smallest. Asked again after each admission, so it may move within a step."""

    def order(self, step: Step) -> Iterator[Request]:
        for queue in self._queues.values():
            queue.restore()
        while True:
            heads = [(queue, head) for queue in self._queues.values() if (head := queue.head())]
            if not heads:
                return
            queue, request = min(heads, key=lambda one: (self.user_key(one[1].user, step), one[1].due, one[1].row))
            if request.row not in step.evicted:
                yield request
            if request.state == "waiting":
                queue.set_aside()

    def _enqueue(self, request: Request, step: Step) -> None:
        self._queues[request.user].push(request, self.key(request, step))

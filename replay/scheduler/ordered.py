"""`Ordered`: running requests first, then waiting ones by one key, as long as they fit.

It is the loop of most serving engines, with a place to override for each decision: order, chunk, victim, admission.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from replay.request import Request
from replay.scheduler.admission import Admission, admissions
from replay.scheduler.listener import Listener
from replay.scheduler.policy import Policy
from replay.scheduler.step import Step
from replay.scheduler.waiting import WaitingHeap

ADMISSION = {"rules": admissions, "shared": True, "help": "whether who is next may join, by memory to come"}
"""What there is to say of the option `admission`, for policies with another default."""


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

    admission: str | Admission = field(default="headroom", kw_only=True, metadata=ADMISSION)

    _queue: WaitingHeap[float] = field(default_factory=WaitingHeap, init=False, repr=False)
    _rule: Admission = field(init=False, repr=False)

    def key(self, request: Request, step: Step) -> float:
        """Who waits first: the smallest. First come, first served unless overridden."""
        return request.due

    def run_key(self, request: Request, step: Step) -> tuple[float, ...]:
        """Which running request is the most entitled to go on: the longest resident unless overridden."""
        return (request.sequence,)

    def chunk(self, request: Request, step: Step) -> int | None:
        """The most tokens that `request` is given in this step; None: all that it needs, as far as the budget goes."""
        return None

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
        while taken := self._queue.take():
            if taken[1].row not in step.evicted:
                yield taken[1]

    def schedule(self, step: Step) -> None:
        self.go_on(step)
        if step.evicted and step.shares:
            return  # blocks are short: whoever joins now is evicted next
        self.join(step)

    def go_on(self, step: Step) -> None:
        """Give those who run their tokens."""
        running = sorted(step.running, key=lambda one: self.run_key(one, step))
        if self.decodes_first:
            running.sort(key=lambda one: one.prefilling)
        for request in running:
            self._keep_running(request, step)

    def join(self, step: Step) -> None:
        """Admit those who wait, in order, until one does not fit."""
        if not step.admits():
            return
        skipped = 0
        for request in self.order(step):
            if not self.admit(request, step):
                skipped += 1
                if skipped > self.bypass:
                    return
        if step.waiting_count > len(step.evicted):
            step.withhold()  # `order` left somebody out; whoever was refused has had a reason noted before

    def admit(self, request: Request, step: Step) -> bool:
        """Let one who waits join, if the admission rule and the step agree."""
        if step.residents and not step.padded and not self._rule.admits(request, step):
            return step.withhold("blocks")
        return step.run(request, self.chunk(request, step), headroom=self._rule.headroom)

    def listeners(self) -> Sequence[Listener]:
        rule = self.admission
        self._rule = admissions[rule]() if isinstance(rule, str) else rule
        return (self, self._rule)

    def enqueue(self, request: Request, step: Step) -> None:
        if not self.dynamic:
            self._queue.push(request, self.key(request, step))

    def _keep_running(self, request: Request, step: Step) -> None:
        while request.state == "running" and not step.run(request, self.chunk(request, step)):
            if step.refusal != "blocks":
                return  # out of budget is not out of memory: it is paused
            if not step.evict(self.victim(request, step)):
                return

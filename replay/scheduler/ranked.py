"""`Ranked`: all requests, waiting and running, by one key; the best get tokens, the rest are paused or evicted.

For policies that let a newcomer take the place of one who runs: the size-based and the multi-level ones.
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from replay.request import Request
from replay.scheduler.policy import Policy
from replay.scheduler.step import Step
from replay.scheduler.waiting import WaitingHeap

Rank = tuple[tuple[float, ...], float, int]  # key, due, row


@dataclass
class Ranked(Policy):
    """Tokens in order of `key`, to those who wait and those who run alike, until a step is full; the rest are paused.

    Who waits joins with all that it needs or not at all: room for its whole prompt, and for each resident to grow. For
    that, and for a running request to grow, the worst are evicted, but only by one whose key is strictly better: equal
    keys never evict each other. Nobody joins who is worse than one that was evicted in the same step. Who was evicted
    and is back is safe until it is further than it was: so that every eviction pays for some progress, and a pool that
    is too small for what the keys want ends all the same.

    A waiting request's key is fixed while it waits, and kept in a heap, unless the class says `dynamic`: then all are
    sorted at every step. A running request's key is asked for at every step. Ties break by due, then by row.
    """

    dynamic: ClassVar[bool] = False
    bypass: ClassVar[int] = 0  # waiting requests that may be skipped in a step because they do not fit

    _queue: WaitingHeap[tuple[float, ...]] = field(default_factory=WaitingHeap, init=False, repr=False)
    _lost: Rank = field(init=False, repr=False)  # the best of those evicted in the step at hand, where somebody was

    @abstractmethod
    def key(self, request: Request, step: Step) -> tuple[float, ...]:
        """Who is the most entitled to tokens: the smallest."""

    def chunk(self, request: Request, step: Step) -> int | None:
        """The most tokens that `request` is given in this step; None: all that it needs, as far as the budget goes."""
        return None

    def pinned(self, request: Request, step: Step) -> bool:
        """Whether a running request may not be evicted, for whomever; unless nobody else could go on."""
        return False

    def schedule(self, step: Step) -> None:
        running = sorted((self._rank(one, step), one) for one in step.running)  # ranks differ: they end with the row
        waiting = self._waiting(step)
        skipped = 0
        for rank, request in heapq.merge(running, waiting):
            if step.full:  # whoever is next goes without, be it one who waits or one who runs
                step.withhold("slots" if len(step.shares) >= step.most_scheduled else "budget")
                break
            if request.state == "running":
                self._go_on(rank, request, step, running)
            elif request.state == "waiting" and request.row not in step.evicted and skipped <= self.bypass:
                skipped += not self._join(rank, request, step, running)
                if skipped > self.bypass:
                    waiting.close()  # the others need not be looked at, however many there are
        step.admits()  # notes what those who are left waiting went without
        if running and not step.shares:
            self._go_on_anyhow(step, running)

    def enqueue(self, request: Request, step: Step) -> None:
        request.memory["ranked"] = request.furthest  # what it has to make good once it is back
        if request.row in step.evicted:
            rank = self._rank(request, step)
            self._lost = rank if len(step.evicted) == 1 else min(rank, self._lost)
        if not self.dynamic:
            self._queue.push(request, self.key(request, step))

    def rerank(self, step: Step) -> None:
        """Ask for the key of every waiting request again: for a rule that moves many of them now and then."""
        for request in step.waiting:
            self.enqueue(request, step)

    def _rank(self, request: Request, step: Step) -> Rank:
        return self.key(request, step), request.due, request.row

    def _waiting(self, step: Step) -> Generator[tuple[Rank, Request], None, None]:
        """Those who wait and might join, the best first."""
        if not step.gate:
            return
        if self.dynamic:
            yield from sorted((self._rank(one, step), one) for one in step.waiting)
            return
        self._queue.restore()
        while taken := self._queue.take():
            if taken[1].row not in step.evicted:  # it stands among the running ones still
                yield taken

    def _losers(self, rank: Rank, step: Step, running: list[tuple[Rank, Request]]) -> Iterator[Request]:
        """Who may be evicted for one of this rank, the worst first. They have not had their turn: none has tokens."""
        while running and running[-1][1].row in step.evicted:
            running.pop()  # so that each is met once, however many join in their places
        for (key, *_), loser in reversed(running):
            if key <= rank[0]:
                return
            if loser.state == "running" and not self._safe(loser, step):
                yield loser

    def _safe(self, request: Request, step: Step) -> bool:
        """Whether a running request may not be evicted: by its own right, or as it has to make good an eviction."""
        return request.computed <= request.memory["ranked"] or self.pinned(request, step)

    def _go_on(self, rank: Rank, request: Request, step: Step, running: list[tuple[Rank, Request]]) -> None:
        losers = self._losers(rank, step, running)
        while not step.run(request, self.chunk(request, step)) and step.refusal == "blocks":
            loser = next(losers, None)
            if loser is None or not step.evict(loser):
                return

    def _join(self, rank: Rank, request: Request, step: Step, running: list[tuple[Rank, Request]]) -> bool:
        if step.evicted and rank > self._lost:
            return step.withhold("blocks")
        if not step.affords(request):
            return False
        slots = 1 + step.residents - step.size  # that losers must leave, as with the blocks: no more are looked at
        blocks = step.blocks_to_join(request) - step.free_blocks if step.residents else 0
        for loser in self._losers(rank, step, running):
            if slots <= 0 and blocks <= 0:
                break
            slots -= 1
            blocks -= step.freed_by(loser) + step.claim(loser)
        if slots > 0 or blocks > 0:
            return step.withhold("slots" if slots > 0 else "blocks")
        for loser in self._losers(rank, step, running):
            if step.slots > 0 and step.free_blocks >= step.blocks_to_join(request):
                break
            step.withhold("slots" if step.slots <= 0 else "blocks")  # what the loser goes without
            step.evict(loser)
        return step.run(request, self.chunk(request, step))

    def _go_on_anyhow(self, step: Step, running: Sequence[tuple[Rank, Request]]) -> None:
        """Nobody got tokens, for want of blocks: whoever is best goes on, at the cost of the worst; the safe first."""
        left = [request for _, request in running if request.state == "running"]
        left.sort(key=lambda one: not self._safe(one, step))  # stable: the best stay in front
        while left and not step.run(left[0]) and step.refusal == "blocks" and len(left) > 1:
            step.evict(left.pop())

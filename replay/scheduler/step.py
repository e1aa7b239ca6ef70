"""A step is a transaction on the engine: the policy proposes, the engine disposes.

Each call is applied at once, or changes nothing and returns False; `refusal` then says why. The step alone knows slots,
token budget, blocks and the mode's gate. It does not know why a policy wants what it wants.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Literal

from replay.executors.interface import CostModel, Share
from replay.predictors import Predictor
from replay.request import Request
from replay.scheduler.modes import Mode
from replay.scheduler.state import State
from replay.scheduler.step_view import StepView

if TYPE_CHECKING:
    from replay.scheduler.listener import Listener
    from replay.scheduler.policy import Policy

Eviction = Literal["recompute", "swap"]


class Step(StepView):
    """What a policy sees of one step, and the three things it may do: run a request, evict one, reject one."""

    def __init__(
        self,
        number: int,
        now: float,
        state: State,
        mode: Mode,
        policy: Policy,
        listeners: Sequence[Listener],
        predictor: Predictor,
        cost: CostModel,
        random: Random,
    ) -> None:
        super().__init__(number, now, state, mode, predictor, cost, random)
        self.evictions = 0  # of requests that ran before; those who joined in this step never did
        self._newcomers: set[int] = set()  # rows that were admitted for the first time
        self._policy = policy
        self._listeners = listeners

    def run(self, request: Request, tokens: int | None = None, *, headroom: bool = True) -> bool:
        """Give `request` tokens in this step (all that it needs, or at most `tokens`); admits it if it waits.

        False when the gate, the slots, the budget or the blocks say no, and for a request that has its tokens
        already, was evicted in this step or is over (then `refusal` is None). Where prompts are computed whole,
        `tokens` is only a wish. A request joins others only if it finds `blocks_to_join` free: else it would be evicted
        in a step or two, and again. Without `headroom`, it is enough that its tokens of this step fit.
        """
        self.refusal = None
        if self.closed or request.row in self.shares or request.row in self.evicted:
            return False
        if request.state not in ("waiting", "running") or tokens == 0:
            return False
        joins = request.state == "waiting"
        if joins and not self.gate:
            return self._refuse("gate")
        if (joins and self.slots <= 0) or len(self.shares) >= self._scheduled:
            return self._refuse("slots")
        pool, shared = self._state.pool, self._shared(request)
        start = len(shared) * pool.block_size or request.computed
        todo = request.context - start
        granted = self._grant(todo, tokens)
        if not granted:
            return self._refuse("budget")
        if joins and headroom and self._state.resident and not self._padded:
            wanted = pool.blocks_for(request.context) - pool.held(shared) + self._growth()
            if pool.free_blocks < wanted:
                return self._refuse("blocks")
        end, lacked = start + granted, 0 if joins or self._lacking is None else self._lacks(request)
        reach = max(end, min(self._mode.reservation(request, end), pool.capacity)) if joins else end
        if not pool.grow(request.row, reach, shared):
            return self._refuse("blocks")
        if self.budget is not None:
            self.budget = max(0, self.budget - granted)
        if self.bound is None and granted < min(todo, tokens or todo):
            self.bound = "budget"
        assert not self.caches or pool.writable(request.row, start, end), "nobody writes what others read"
        samples = end == request.context
        self.shares[request.row] = Share(request, start, granted, samples, pool.tables[request.row])
        if joins:
            if request.admitted is None:
                self._newcomers.add(request.row)
            self._state.admit(request, self.now, start if self.caches else None)
            self.admitted[request.row] = request
        if self._lacking is not None:
            self._lacking += self._lacks(request) - lacked
        if joins:
            for listener in self._listeners:
                listener.on_admit(request, self)
        return True

    def evict(self, request: Request, how: Eviction | None = None) -> bool:
        """Take a running request's blocks and slot away: it waits again.

        "recompute": it will be computed again from its start. "swap": its tokens are copied to host memory, and back
        when it is admitted again. Unless told, it is swapped where host memory has room for all its computed blocks and
        nobody else holds some of them: those would come back as copies, and are found again without any.
        Its tokens of this step are undone. False where the mode holds a batch to its end, for a request that does not
        run, and for "swap" where there is no room.
        """
        self.refusal = None
        if self.closed or self._padded or request.state != "running":
            return False
        joined = request.row in self.admitted  # then it never ran, and nothing of its own is lost
        room = joined or self._state.can_swap(request)
        if how == "swap" and not room:
            return False
        keeps = room and request.computed > 0 and (how == "swap" or not self._state.pool.shared(request.row))
        swap = how != "recompute" and (self._state.returns(request) if joined else keeps)
        share = self.shares.pop(request.row, None)
        if share is not None and self.budget is not None and self._budget is not None:
            self.budget = min(self._budget, self.budget + share.tokens)
        if self._lacking is not None:
            self._lacking -= self._lacks(request)
        self._state.evict(request, swap=swap)
        if joined:
            del self.admitted[request.row]
            if request.row in self._newcomers:
                request.admitted = request.cached_tokens = None  # its admission is undone
        else:
            self.evictions += 1
            request.evictions += 1
            request.swaps += swap
        self.evicted[request.row] = request
        for listener in self._listeners:
            listener.on_evict(request, self)
        self._policy.enqueue(request, self)
        return True

    def reject(self, request: Request, reason: str) -> bool:
        """Refuse a waiting request for good (load shedding); `reason` goes into its row.

        False for one that was evicted in this step: the step under way may still bring it a token.
        """
        self.refusal = None
        if self.closed or request.state != "waiting" or request.row in self.evicted:
            return False
        self._state.end(request, self.now, "rejected", reason)
        self.rejected.append(request)
        return True

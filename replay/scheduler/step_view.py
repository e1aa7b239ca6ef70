"""What a step tells: who waits, who runs, what is left to give, what a request would need; and why it said no.

It changes nothing but the note of what a request went without. What a policy may do is `replay.scheduler.step`.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Literal

from replay.executors.interface import CostModel, Share
from replay.predictors import Predictor
from replay.request import Request
from replay.scheduler.modes import Mode
from replay.scheduler.state import State

Refusal = Literal["gate", "slots", "budget", "blocks", "policy"]


class StepView:
    """One step as a policy sees it. `refusal` says why the last call said no, `bound` why the first one did."""

    def __init__(
        self,
        number: int,
        now: float,
        state: State,
        mode: Mode,
        predictor: Predictor,
        cost: CostModel,
        random: Random,
    ) -> None:
        self.number = number
        self.now = now
        self.gate = False  # whether waiting requests may join; set once the arrivals are in
        self.closed = True  # but while the policy schedules: before and after, nothing that it calls changes anything
        self.size = mode.slots  # requests that may be resident; the batch size in force, once the arrivals are in
        self.budget = mode.budget  # tokens left in this step; None: no limit
        self.random = random  # seeded: the only source of chance that a policy may use
        self.refusal: Refusal | None = None  # why the last call said no
        self.bound: Refusal | None = None  # why a request first went without in this step
        self.shares: dict[int, Share] = {}
        self.admitted: dict[int, Request] = {}
        self.evicted: dict[int, Request] = {}
        self.rejected: list[Request] = []
        self.caches = state.pool.prefix_cache and not mode.padded  # a plain `generate` shares no prefixes
        self._state = state
        self._mode = mode
        self._padded, self._whole = mode.padded, mode.whole  # asked for each request, so kept at hand
        self._scheduled, self._budget = mode.scheduled, mode.budget
        self._lacking: int | None = None  # blocks that residents' prompts lack yet; counted when first asked for
        self._predictor = predictor
        self._cost = cost

    @property
    def waiting(self) -> Iterable[Request]:
        """Requests that may be admitted, in no order to rely on: those evicted in this step are not among them."""
        if not self.evicted:
            return self._state.waiting.values()
        return [request for row, request in self._state.waiting.items() if row not in self.evicted]

    @property
    def waiting_count(self) -> int:
        """How many wait, those evicted in this step included."""
        return len(self._state.waiting)

    @property
    def running(self) -> list[Request]:
        """Resident requests whose answers are not complete, in order of admission; with tokens in this step or not."""
        return [request for request in self._state.resident.values() if request.state == "running"]

    @property
    def slots(self) -> int:
        """Further requests that may become resident."""
        return max(0, self.size - len(self._state.resident))

    @property
    def residents(self) -> int:
        """Requests that hold a slot, those whose answers are complete and held included."""
        return len(self._state.resident)

    @property
    def padded(self) -> bool:
        """Whether the mode runs batches to their end, and reserves what they need: then nobody is evicted."""
        return self._padded

    @property
    def full(self) -> bool:
        """Whether nobody can be given tokens any more in this step."""
        return len(self.shares) >= self._scheduled or self.budget == 0

    @property
    def most_tokens(self) -> int | None:
        """Tokens that one step may compute, this and those to come; None: no limit."""
        return self._budget

    @property
    def most_scheduled(self) -> int:
        """Requests that may be given tokens in one step."""
        return self._scheduled

    @property
    def blocks(self) -> int:
        """Blocks of the pool."""
        return self._state.pool.blocks

    @property
    def free_blocks(self) -> int:
        return self._state.pool.free_blocks

    @property
    def block_size(self) -> int:
        return self._state.pool.block_size

    def active(self, user: str | None) -> int:
        """Resident requests of `user`, those admitted earlier in this step included."""
        return self._state.active[user]

    def scheduled(self, request: Request) -> int:
        """Tokens that `request` has been given in this step; 0 for one that is paused."""
        share = self.shares.get(request.row)
        return share.tokens if share else 0

    def prefix_hit(self, request: Request) -> int:
        """Tokens of a waiting request that need not be computed if it is admitted now: the cache holds them.

        0 for one that runs, for one that was swapped out (its own tokens come back), and where no cache is used.
        """
        return len(self._shared(request)) * self.block_size

    def expected_tokens(self, request: Request) -> float:
        """Output tokens to expect of `request` in all, by the experiment's predictor: always more than generated.

        An answer that has outgrown its prediction is expected to get a tenth longer than it is, or what was declared.
        """
        expected = self._predictor.expect(request)
        if expected <= request.generated:
            expected = min(1.1 * request.generated, request.max_tokens)
        return max(expected, request.generated + 1)

    def seconds(self, prefill: int = 0, decode: int = 0, context: int = 0) -> float:
        """What a step of so many prefill tokens, decodes and context tokens takes, by the engine's cost model."""
        return self._cost.seconds(prefill, decode, context)

    def admits(self) -> bool:
        """Whether anybody waits who could join, as far as gate, slots and budget go. Asked first, it saves sorting."""
        self.refusal = None
        if self.closed or not self._state.waiting:
            return False
        if not self.gate:
            return self._refuse("gate")
        if self.slots <= 0 or len(self.shares) >= self._scheduled:
            return self._refuse("slots")
        return True if self.budget is None or self.budget > 0 else self._refuse("budget")

    def affords(self, request: Request) -> bool:
        """Whether gate and budget allow `request`, which waits, tokens in this step; slots and blocks apart."""
        self.refusal = None
        if self.closed or request.state != "waiting" or request.row in self.evicted:
            return False
        if not self.gate:
            return self._refuse("gate")
        if len(self.shares) >= self._scheduled:
            return self._refuse("slots")
        return self._grant(request.context - self._found(request), None) > 0 or self._refuse("budget")

    def blocks_to_join(self, request: Request) -> int:
        """Free blocks that `request`, which waits, should find to join: for all that it must compute, and beside
        others for what these need to finish their prompts, and a block for each to grow."""
        pool, shared = self._state.pool, self._shared(request)
        if self._padded:
            return pool.blocks_for(min(self._mode.reservation(request, request.context), pool.capacity))
        return pool.blocks_for(request.context) - pool.held(shared) + self._growth()

    def claim(self, request: Request) -> int:
        """How many of `blocks_to_join` are for `request`, which is resident: they need not be free if it is evicted."""
        return 1 + (self.blocks_to_reach(request, request.context) if request.prefilling else 0)

    def new_blocks(self, request: Request) -> int:
        """Free blocks that the next tokens of `request`, which waits, take as far as the budget goes; no more."""
        pool, shared = self._state.pool, self._shared(request)
        start = len(shared) * pool.block_size or request.computed
        return pool.blocks_for(start + self._grant(request.context - start, None)) - pool.held(shared)

    def blocks_to_reach(self, request: Request, tokens: int) -> int:
        """Further blocks that `request` takes, waiting or running, until it holds `tokens` tokens, or all of the pool.

        What a waiting one would share with residents costs nothing; what is cached and nobody holds does.
        """
        pool = self._state.pool
        reach = pool.blocks_for(min(tokens, pool.capacity))
        return max(0, reach - (pool.held(self._shared(request)) if request.state == "waiting" else self.holds(request)))

    def holds(self, request: Request) -> int:
        """Blocks that `request` holds, shared ones included."""
        return len(self._state.pool.tables.get(request.row, ()))

    def freed_by(self, request: Request) -> int:
        """Blocks that nobody would hold if `request` were evicted."""
        return self._state.pool.own(request.row)

    def withhold(self, why: Refusal = "policy") -> bool:
        """Note that a waiting request is held back by a rule of the policy's own, or for want of what; always False."""
        return self._refuse(why)

    def _shared(self, request: Request) -> list[int]:
        """The blocks of the cache that a waiting request would begin with."""
        if not self.caches or request.state != "waiting" or request.swapped:
            return []
        return self._state.cached(request)

    def _found(self, request: Request) -> int:
        """Tokens of a waiting request that need not be computed: cached, or in host memory."""
        return len(self._shared(request)) * self.block_size or request.computed

    def _growth(self) -> int:
        """Blocks for those who are resident: all that their prompts lack yet, and one for each to grow."""
        lacking = sum(map(self._lacks, self.running)) if self._lacking is None else self._lacking
        self._lacking = None if self.closed else lacking  # before the policy schedules, residents may time out
        return self.residents + lacking

    def _lacks(self, request: Request) -> int:
        """Blocks that the prompt of one who runs lacks yet."""
        if not request.prefilling:
            return 0
        return max(0, self._state.pool.blocks_for(request.context) - self.holds(request))

    def _grant(self, needed: int, wish: int | None) -> int:
        """How many of the tokens `needed` the budget allows: all of a whole prefill or nothing, else what is left."""
        if self.budget is None:
            return needed
        if self._whole:
            assert self._budget is not None, "a step with a budget has a mode with one"
            alone = not self.shares and needed > self._budget  # the one exception: it would never get its turn
            return needed if needed <= self.budget or alone else 0
        return max(0, min(needed, self.budget, needed if wish is None else wish))

    def _refuse(self, why: Refusal) -> bool:
        self.refusal = why
        if self.bound is None:
            self.bound = why
        return False

"""`Levelled`: a multi-level feedback queue, for policies that know no lengths and go by the service that was given.

It does not know at which level a request begins, nor who is promoted: that is each policy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from replay.request import Request
from replay.scheduler.ranked import Ranked
from replay.scheduler.step import Step


@dataclass(slots=True)
class Standing:
    """Where a request stands: its level, the service there and in all, and when it last got tokens (seconds)."""

    level: int
    ran: float
    used: float = 0.0
    served: float = 0.0


@dataclass
class Levelled(Ranked):
    """The highest level first, and within a level whoever was due first; only a higher level evicts a lower one.

    Level 0 is the highest. Service is the time of the steps in which a request got tokens. Whoever has had the quantum
    of its level (`quantum_s * ratio ** level`) goes one level down, and what it has used counts from 0 again: that is
    seen at the end of a step, so a level gives less than its quantum and a step. Of a request that was evicted, only
    steps that bring a token count from then on: what it lost is not charged again but for what comes back in such a
    step.
    """

    quantum_s: float = field(default=0.01, metadata={"above": 0, "help": "seconds of service that the top level gives"})
    ratio: float = field(
        default=2.0, metadata={"minimum": 1, "maximum": 100, "help": "a level's quantum over that of the one above"}
    )
    levels: int = field(default=12, metadata={"minimum": 1, "help": "levels; nobody leaves the lowest"})

    def first_level(self, request: Request, step: Step) -> int:
        """Where a request begins: at the top unless overridden."""
        return 0

    def quantum(self, level: int) -> float:
        """Seconds of service that a level gives."""
        return self.quantum_s * self.ratio**level

    def standing(self, request: Request) -> Standing:
        kept: Standing = request.memory["levelled"]
        return kept

    def promote(self, step: Step, starves: Callable[[Request], bool]) -> None:
        """Everybody of whom `starves` says so goes to the top level. It asks of all, so ask for it now and then."""
        for request in (*step.waiting, *step.running):
            standing = self.standing(request)
            if standing.level and starves(request):
                standing.level, standing.used = 0, 0.0
                if request.state == "waiting":
                    self.enqueue(request, step)

    def key(self, request: Request, step: Step) -> tuple[float, ...]:
        return (self.standing(request).level,)

    def on_arrival(self, request: Request, step: Step) -> None:
        level = min(self.first_level(request, step), self.levels - 1)
        request.memory["levelled"] = Standing(level, request.due)

    def on_tokens(self, request: Request, tokens: int, new: int, seconds: float, step: Step) -> None:
        standing = self.standing(request)
        standing.ran = step.now + seconds
        if request.evictions and not new:
            return  # it computes again what it lost
        standing.served += seconds
        standing.used = round(standing.used + seconds, 9)  # to the nanosecond, as clocks count: two halves are a whole
        if standing.used >= self.quantum(standing.level) and standing.level < self.levels - 1:
            standing.level, standing.used = standing.level + 1, 0.0
            if request.state == "waiting":  # it was evicted while this step was computed
                self.enqueue(request, step)

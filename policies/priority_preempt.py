"""Priority that really preempts: an urgent request does not wait for a less urgent one to finish.

Source: SGLang's scheduler, priority scheduling with preemption; there the difference that it takes is an option too.
"""

from dataclasses import dataclass, field

from replay.scheduler import Ordered, Request, Step, policy


@policy("priority_preempt")
@dataclass
class PriorityPreempt(Ordered):
    """The most urgent is admitted first, and evicts running ones that are less urgent by more than `threshold`.

    Where slots or blocks are short for it, the least urgent goes first, of these the newest, and no more than needed;
    nobody where that is not enough (an `admission` beyond the default may find so), nor for an equal. Whoever is no
    more urgent than one evicted in a step does not join in it; a prompt in chunks goes on after more urgent ones join.

    Does badly: the least urgent may wait for ever; and evicted work may have to be computed again, and again.
    """

    threshold: int = field(default=0, metadata={"minimum": 0, "help": "difference in priority that it takes to evict"})

    def key(self, request: Request, step: Step) -> float:
        return -request.urgency

    def run_key(self, request: Request, step: Step) -> tuple[float, ...]:
        return (-request.urgency, request.sequence)

    def schedule(self, step: Step) -> None:
        self._queue.restore()
        first = self._queue.first() if step.gate else None
        running = sorted(step.running, key=lambda one: (one.prefilling, self.run_key(one, step)))
        later = [one for one in running if one.prefilling and first and one.urgency < first.urgency]
        for request in running[: len(running) - len(later)]:
            self._keep_running(request, step)
        for request in self.order(step):
            if not self.admit(request, step):
                break
        for request in later:
            self._keep_running(request, step)

    def admit(self, request: Request, step: Step) -> bool:
        if step.shares and any(request.urgency <= evicted.urgency for evicted in step.evicted.values()):
            return step.withhold("blocks")
        if super().admit(request, step):
            return True
        losers = self._losers(request, step)
        while losers and step.refusal in ("slots", "blocks") and step.evict(losers.pop()):
            if super().admit(request, step):
                return True
        return False

    def _losers(self, request: Request, step: Step) -> list[Request]:
        """Who may be evicted for a request, the first to go last; nobody if all are not enough."""
        less = [one for one in step.running if one.urgency + self.threshold < request.urgency]
        room = step.free_blocks + sum(step.freed_by(one) + step.claim(one) for one in less)
        enough = step.residents - len(less) < step.size and room >= step.blocks_to_join(request)
        return sorted(less, key=lambda one: self.run_key(one, step)) if enough else []

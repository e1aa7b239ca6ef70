"""Autellix: the calls of an agent's program are ranked by what the program has had, not each by itself.

Source: Luo et al., Autellix: An Efficient Serving Engine for LLM Agents as General Programs, 2025 (arXiv 2502.13965).
"""

from dataclasses import dataclass, field

from replay.scheduler import Levelled, Request, Step, policy


@policy("autellix")
@dataclass
class Autellix(Levelled):
    """PLAS: a call begins at the level of the service that the completed calls of its program have had.

    A program is a session, its turns are the calls; a request without a session is a program of one call. The call's
    level is the highest whose quantum is more than that service, in seconds; and like everybody's in `mlfq` it sinks
    with each quantum that the call itself gets. In every `every`-th step, a call goes to the top that has got no tokens
    for `beta` times as long as its program was served. The paper gives no edges of levels and no beta: those are ours.
    Its ATLAS, for programs of several threads, ranks by the longest chain of calls. Turns of a session follow each
    other, so here that would be the same.

    Does badly: without sessions of several turns there is nothing to rank by, and it is `mlfq`. Where memory is short,
    a program late in its life is evicted again and again.
    """

    quantum_s: float = field(default=0.5, metadata={"above": 0, "help": "seconds of service that the top level gives"})
    levels: int = field(default=8, metadata={"minimum": 1, "help": "levels; nobody leaves the lowest"})
    every: int = field(default=100, metadata={"minimum": 1, "help": "steps between looks for the starving"})
    beta: float = field(default=10.0, metadata={"minimum": 0, "help": "wait over service from which a program starves"})

    _served: dict[str | None, float] = field(default_factory=dict, init=False, repr=False)  # seconds, of each program

    def first_level(self, request: Request, step: Step) -> int:
        served = self._served.get(request.session, 0.0)
        return next((level for level in range(self.levels) if self.quantum(level) > served), self.levels)

    def on_finish(self, request: Request, step: Step) -> None:
        if request.session is not None:
            served = self._served.get(request.session, 0.0)
            self._served[request.session] = served + self.standing(request).served

    def schedule(self, step: Step) -> None:
        if step.number % self.every == 0:
            self.promote(step, lambda request: self._starves(request, step.now))
        super().schedule(step)

    def _starves(self, request: Request, now: float) -> bool:
        standing = self.standing(request)
        return now - standing.ran >= self.beta * (self._served.get(request.session, 0.0) + standing.served)

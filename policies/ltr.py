"""Learning to rank: shortest first by a score of which only the order counts, with a guard against starvation.

Source: Fu et al., Efficient LLM Scheduling by Learning to Rank, NeurIPS 2024 (arXiv 2408.15792); the guard's 200 and 10
steps are those of the authors' code.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from replay.scheduler import Ranked, Request, Step, policy


@dataclass(slots=True)
class Rank:
    score: float  # given once, at arrival
    ran: int  # the last step in which it got tokens; the one before its arrival until there is one
    boosted: int | None = None  # since which step it goes before the others
    left: int = 0  # steps with tokens until it is one of them again


@policy("ltr")
@dataclass
class Ltr(Ranked):
    """Whoever has the lowest score goes first; and before them all, whoever got no tokens for `starve` steps.

    The score is the length that the predictor expects at arrival; nothing but its order matters. Who starves stays in
    front until it has got tokens in `boost` steps. Several that starve go in the order in which they began to (in the
    authors' code, by score): so nobody waits without end.

    Does badly: where memory is short and evicted work is computed again, each boost evicts somebody, and costs more
    than it brings; running answers stall.
    """

    starve: int = field(default=200, metadata={"minimum": 1, "help": "steps in a row without tokens that are too many"})
    boost: int = field(default=10, metadata={"minimum": 1, "help": "steps with tokens that who starves gets in front"})
    _looks: dict[int, list[Request]] = field(default_factory=lambda: defaultdict(list), init=False, repr=False)

    def key(self, request: Request, step: Step) -> tuple[float, ...]:
        rank: Rank = request.memory["ltr"]
        return (1.0, rank.score) if rank.boosted is None else (0.0, rank.boosted)

    def on_arrival(self, request: Request, step: Step) -> None:
        request.memory["ltr"] = Rank(step.expected_tokens(request), step.number - 1)
        self._looks[step.number + self.starve].append(request)

    def schedule(self, step: Step) -> None:
        for request in self._looks.pop(step.number, ()):  # not at everybody in every step: when it could starve
            if request.state in ("waiting", "running"):
                self._look(request, request.memory["ltr"], step)
        super().schedule(step)
        for rank in (request.memory["ltr"] for request in step.running if step.scheduled(request)):
            rank.ran, rank.left = step.number, max(0, rank.left - 1)
            rank.boosted = rank.boosted if rank.left else None

    def _look(self, request: Request, rank: Rank, step: Step) -> None:
        if rank.boosted is None and rank.ran + self.starve < step.number:
            rank.boosted, rank.left = step.number, self.boost
            if request.state == "waiting":
                self.enqueue(request, step)
        self._looks[(rank.ran if rank.boosted is None else step.number) + self.starve + 1].append(request)

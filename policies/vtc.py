"""Virtual token counters: the user who has received the least is next, and who comes to the queue starts level.

Source: Sheng et al., Fairness in Serving Large Language Models, OSDI 2024 (arXiv 2401.00588).
"""

from collections import defaultdict
from dataclasses import dataclass, field

from replay.scheduler import PerUser, Request, Served, Step, policy


@policy("vtc")
@dataclass
class Vtc(Served, PerUser):
    """The user with the least counted service is next; who comes to the queue is lifted to the least of those in it.

    Of a user, who was due first. Where nobody else waits, the lift is to whoever left the queue last. An eviction
    brings a user to the queue as an arrival does. Requests without a user are one user. With `predict`, the answer that
    the length predictor expects is counted at admission, and put right token by token and at the end: the paper's
    VTC(predict), and with the oracle VTC(oracle).

    Two users who always wait differ by at most 2 U in what they get, U being the most that one admission can bring.

    Does badly: it takes no notice of prefixes, so users' turns drive each other's out of a cache; within the bound,
    long answers of unknown length still make for bursts.
    """

    predict: bool = field(default=False, metadata={"help": "whether expected answers count at admission"})
    _counters: dict[str | None, float] = field(default_factory=lambda: defaultdict(float), init=False, repr=False)
    _last: tuple[str | None] | None = field(default=None, init=False, repr=False)  # who left the queue last

    def user_key(self, user: str | None, step: Step) -> float:
        return self._counters[user]

    def charge(self, user: str | None, service: float) -> None:
        self._counters[user] += service

    def ahead(self, request: Request, step: Step) -> float:
        return step.expected_tokens(request) if self.predict else 0.0

    def on_arrival(self, request: Request, step: Step) -> None:
        if not self.waits(request.user) and (level := self.next_user(step) or self._last):
            self._counters[request.user] = max(self._counters[request.user], self._counters[level[0]])

    def on_admit(self, request: Request, step: Step) -> None:
        super().on_admit(request, step)
        self._last = (request.user,)

    def on_evict(self, request: Request, step: Step) -> None:
        super().on_evict(request, step)
        self.on_arrival(request, step)

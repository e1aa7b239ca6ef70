"""Deficit longest prefix match: longest prefix match among the users who have not received too much.

Source: Cao et al., Locality-aware Fair Scheduling in LLM Serving, 2025 (arXiv 2501.14312).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from replay.scheduler import Deficits, PrefixAware, Request, Served, Step, policy


@policy("dlpm")
@dataclass
class Dlpm(Served, PrefixAware):
    """Longest prefix match among users with a deficit above 0; when none has, all that are spent get a quantum more.

    Only what is computed is taken off: of a prompt what the cache did not hold, and the answer. A large quantum makes
    it lpm, a small one keeps users level. Without a cache, or with more waiting than `fallback`, it goes through them
    as they came, deficits and all. Requests without a user are one user. It sorts all who wait, in each step in which
    somebody may join.

    Does badly: within a user cold prefixes still wait for warm ones, as under lpm.
    """

    quantum: float = field(default=1000.0, metadata={"above": 0, "help": "service that a user may receive in a round"})
    _deficits: Deficits = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._deficits = Deficits(self.quantum)

    def charge(self, user: str | None, service: float) -> None:
        self._deficits.spend(user, service)

    def input_tokens(self, request: Request) -> int:
        return request.prompt_tokens - (request.cached_tokens or 0)

    def order(self, step: Step) -> Iterator[Request]:
        waiting = list(self.by_prefix(step))
        while waiting:
            for request in waiting:
                if self._deficits.of(request.user) > 0:
                    yield request
            waiting = [request for request in waiting if request.state == "waiting"]
            users = {request.user for request in waiting}
            self._deficits.refill(min((self._deficits.rounds(user) for user in users), default=0))

"""A limit on requests per minute of each user, as public services have; first come, first served otherwise.

Source: Sheng et al., Fairness in Serving Large Language Models, OSDI 2024 (arXiv 2401.00588), as the baseline RPM.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import ClassVar

from replay.scheduler import PerUser, Request, Step, policy


@policy("rate_limit")
@dataclass
class RateLimit(PerUser):
    """Who was due first is next, of users with fewer than `per_minute` requests let in during the last 60 seconds.

    Let in is when it is first admitted, and others wait; or, with `reject`, when it comes, and others are turned away,
    as in the paper's artifact. Requests without a user are one user.

    Does badly: it leaves the engine idle although somebody waits, and requests within the limit may be of any length.
    """

    breaks: ClassVar[dict[str, str]] = {"busy": "users wait for their minute, and the engine with them"}
    per_minute: int = field(default=20, metadata={"minimum": 1, "help": "requests of a user in any 60 seconds"})
    reject: bool = field(default=False, metadata={"help": "whether the others are turned away, and do not wait"})
    _let_in: deque[tuple[float, str | None]] = field(default_factory=deque, init=False, repr=False)  # they count until
    _counts: Counter[str | None] = field(default_factory=Counter, init=False, repr=False)  # of those, by user
    _new: list[Request] = field(default_factory=list, init=False, repr=False)

    def user_key(self, user: str | None, step: Step) -> float:
        return self._exceeds(self.head(user))

    def admit(self, request: Request, step: Step) -> bool:
        return step.withhold() if self._exceeds(request) else super().admit(request, step)

    def schedule(self, step: Step) -> None:
        while self._let_in and self._let_in[0][0] <= step.now:
            self.touch(user := self._let_in.popleft()[1])
            self._counts[user] -= 1
        for request in self._new:
            if not self._exceeds(request) or not step.reject(request, f"over {self.per_minute} requests a minute"):
                self.on_admit(request, step)
        self._new.clear()
        super().schedule(step)

    def wake(self, now: float) -> float | None:
        return self._let_in[0][0] if self._let_in else None

    def on_arrival(self, request: Request, step: Step) -> None:
        self._new += [request] * self.reject

    def on_admit(self, request: Request, step: Step) -> None:
        if "rate_limit" not in request.memory:
            request.memory["rate_limit"] = until = round(step.now + 60, 9)
            self._let_in.append((until, request.user))
            self._counts[request.user] += 1

    def _exceeds(self, request: Request) -> bool:
        return "rate_limit" not in request.memory and self._counts[request.user] >= self.per_minute

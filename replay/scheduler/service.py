"""What users have received of an engine, each token counted once: for policies that are fair between users.

Service is `input_weight` for a token of a prompt and `output_weight` for one of an answer, divided by the weight of its
user. A prompt counts when its request is first admitted, a token of an answer when it comes; what is computed again
after an eviction counts no more. It does not know what a policy makes of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from replay.request import Request
from replay.scheduler.listener import Listener
from replay.scheduler.step import Step


@dataclass
class Served(Listener, ABC):
    """Tells a policy what each user receives: `charge` is called for it. It stands before the policy's other base.

    A policy may count tokens of an answer `ahead`, when its request is first admitted: then those that come are paid
    for up to there, and what was counted too many is given back when the request is over.
    """

    input_weight: float = field(
        default=1.0, kw_only=True, metadata={"minimum": 0, "help": "service that a token of a prompt is"}
    )
    output_weight: float = field(
        default=2.0, kw_only=True, metadata={"minimum": 0, "help": "service that a token of an answer is"}
    )
    weights: dict[str, float] = field(
        default_factory=dict,
        kw_only=True,
        metadata={
            "above": 0,
            "example": {"ada": 2.0},
            "help": "shares of users, such as { ada = 2.0 }; 1 for whom it does not name",
        },
    )

    @abstractmethod
    def charge(self, user: str | None, service: float) -> None:
        """`user` has received `service`, by its weight; less than 0: it is given back."""

    def input_tokens(self, request: Request) -> int:
        """Tokens of its prompt that count, when `request` is first admitted: all of them."""
        return request.prompt_tokens

    def ahead(self, request: Request, step: Step) -> float:
        """Tokens of its answer that count as soon as `request` is first admitted: none."""
        return 0.0

    def on_admit(self, request: Request, step: Step) -> None:
        if "served_input" not in request.memory:
            request.memory["served_input"] = self.input_tokens(request)
            request.memory["served_ahead"] = self.ahead(request, step)
            self._charge(request, request.memory["served_input"], request.memory["served_ahead"])

    def on_tokens(self, request: Request, tokens: int, new: int, seconds: float, step: Step) -> None:
        if new:
            paid = min(new, request.memory["served_ahead"])
            request.memory["served_ahead"] -= paid
            self._charge(request, 0, new - paid)

    def on_evict(self, request: Request, step: Step) -> None:
        if request.admitted is None:  # its first admission is undone: it received nothing
            self._charge(request, -request.memory.pop("served_input"), -request.memory.pop("served_ahead"))

    def on_finish(self, request: Request, step: Step) -> None:
        self._charge(request, 0, -request.memory.pop("served_ahead", 0.0))

    def _charge(self, request: Request, inputs: float, outputs: float) -> None:
        service = self.input_weight * inputs + self.output_weight * outputs
        if service:
            weight = 1.0 if request.user is None else self.weights.get(request.user, 1.0)
            self.charge(request.user, service / weight)


class Deficits:
    """Deficit counters: what each user may still receive. In a round all that are spent (not above 0) get a `quantum`.

    A round costs nothing: a user's refills are worked out when it is asked about, however many rounds have passed.
    """

    def __init__(self, quantum: float) -> None:
        self.round = 0
        self._quantum = quantum
        self._known: dict[str | None, tuple[float, int]] = {}  # what is left after which round

    def of(self, user: str | None) -> float:
        """What `user` may still receive; below 0, what it has received too much. It begins with a quantum."""
        left, since = self._known.setdefault(user, (self._quantum, self.round))
        if left > 0:
            return left
        if self.rounds(user):
            return left + self._quantum * (self.round - since)
        return self._quantum - math.fmod(-left, self._quantum)  # exact: the sum might be rounded to 0, and stay there

    def rounds(self, user: str | None) -> int:
        """Rounds until `user` has something left; 0: it has."""
        left, since = self._known.setdefault(user, (self._quantum, self.round))
        return 0 if left > 0 else max(0, int(-left // self._quantum) + 1 - (self.round - since))

    def spend(self, user: str | None, service: float) -> None:
        self._known[user] = (self.of(user) - service, self.round)

    def refill(self, rounds: int) -> None:
        """So many rounds pass."""
        self.round += rounds

"""Least counter first: the user who has received the least so far is next; VTC without its lift.

Source: Sheng et al., Fairness in Serving Large Language Models, OSDI 2024 (arXiv 2401.00588), as a baseline.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from replay.scheduler import PerUser, Served, Step, policy


@policy("lcf")
@dataclass
class Lcf(Served, PerUser):
    """The user who has received the least service since the start is next, and of that user who was due first.

    Service is input_weight for each token of a prompt, at its admission, and output_weight for each token of an answer.
    Requests without a user are one user.

    Does badly: who was idle has a claim for all that time, and keeps everybody else waiting until it is paid.
    """

    _counters: dict[str | None, float] = field(default_factory=lambda: defaultdict(float), init=False, repr=False)

    def user_key(self, user: str | None, step: Step) -> float:
        return self._counters[user]

    def charge(self, user: str | None, service: float) -> None:
        self._counters[user] += service

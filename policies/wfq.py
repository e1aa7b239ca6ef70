"""Weighted fair queueing by start tags (start-time fair queueing), with expected lengths that are put right later.

Source: Goyal, Vin and Cheng, Start-time Fair Queueing, SIGCOMM 1996; after Demers, Keshav and Shenker, Analysis and
Simulation of a Fair Queueing Algorithm, SIGCOMM 1989.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from replay.scheduler import PerUser, Request, Served, Step, policy


@policy("wfq")
@dataclass
class Wfq(Served, PerUser):
    """The user whose next request has the smallest start tag is next: it starts when the user's last one is paid for.

    A request starts at the virtual time when it comes, or where the user's request before it ends, whichever is later;
    it ends after its expected service, by the user's weight. Virtual time is the largest start tag that was admitted.
    Expected lengths are the length predictor's; what they were wrong by goes to the user's next tag, as it is known.
    Requests without a user are one user.

    Does badly: it is as fair as the predictor is good, until a wrong length is put right.
    """

    _tags: dict[str | None, float] = field(default_factory=lambda: defaultdict(float), init=False, repr=False)
    _now: float = field(default=0.0, init=False, repr=False)  # virtual time

    def user_key(self, user: str | None, step: Step) -> float:
        return self._tags[user]

    def charge(self, user: str | None, service: float) -> None:
        self._tags[user] += service

    def ahead(self, request: Request, step: Step) -> float:
        return step.expected_tokens(request)

    def on_arrival(self, request: Request, step: Step) -> None:
        if not self.waits(request.user):
            self._tags[request.user] = max(self._tags[request.user], self._now)

    def on_admit(self, request: Request, step: Step) -> None:
        if not request.evictions:  # whoever comes back had its start before
            self._now = max(self._now, self._tags[request.user])
        super().on_admit(request, step)

"""Deficit round robin: in each round every user may receive a quantum, and what was too much is taken off the next.

Source: Shreedhar and Varghese, Efficient Fair Queueing using Deficit Round Robin, SIGCOMM 1995.
"""

from dataclasses import dataclass, field

from replay.scheduler import Deficits, PerUser, Request, Served, Step, policy


@policy("drr")
@dataclass
class Drr(Served, PerUser):
    """Users with a deficit above 0 are next, who was due first; when none has, all that are spent get a quantum more.

    As answers' lengths are not known beforehand, service is taken off as it is received, and deficits go below 0, where
    the paper's packets wait until theirs covers them. A user who is away keeps what is left, a quantum at most, and
    pays what it owes. Requests without a user are one user.

    Does badly: within a round nobody is held back, so a large quantum lets a user go on for long.
    """

    quantum: float = field(default=1000.0, metadata={"above": 0, "help": "service that a user may receive in a round"})
    _deficits: Deficits = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._deficits = Deficits(self.quantum)

    def user_key(self, user: str | None, step: Step) -> float:
        return self._deficits.round + self._deficits.rounds(user)

    def charge(self, user: str | None, service: float) -> None:
        self._deficits.spend(user, service)

    def on_admit(self, request: Request, step: Step) -> None:
        self._deficits.refill(self._deficits.rounds(request.user))
        super().on_admit(request, step)

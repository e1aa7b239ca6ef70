"""Round robin between users: each has a turn, and a turn is one request.

Source: J. Nagle, On Packet Switches with Infinite Storage, RFC 970, 1985, for hosts that share a gateway.
"""

from dataclasses import dataclass, field

from replay.scheduler import PerUser, Request, Step, policy


@policy("round_robin")
@dataclass
class RoundRobin(PerUser):
    """The user whose last turn is the longest ago is next, and of that user who was due first.

    Between two turns of a user who always has a request waiting, nobody else has more than one. Who comes back after
    an eviction has had its turn. Requests without a user are one user.

    Does badly: a turn is a request, however long, so a user with long ones gets more.
    """

    _turns: dict[str | None, int] = field(default_factory=dict, init=False, repr=False)  # the how-manieth was its last
    _turn: int = field(default=0, init=False, repr=False)

    def user_key(self, user: str | None, step: Step) -> float:
        return self._turns.get(user, 0)

    def on_admit(self, request: Request, step: Step) -> None:
        if "round_robin" not in request.memory:
            self._turn += 1
            self._turns[request.user] = request.memory["round_robin"] = self._turn

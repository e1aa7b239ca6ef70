"""Fair sharing by count: the user with the fewest active requests is next.

Source: none of its own; it is what a load balancer does that gives to whoever has the fewest connections, turned round.
"""

from dataclasses import dataclass

from replay.scheduler import PerUser, Step, policy


@policy("fair")
@dataclass
class Fair(PerUser):
    """The user with the fewest active (resident) requests is next, and of that user who was due first.

    Those admitted earlier in the same step count. Requests without a user are one user.

    Does badly: it counts requests, not tokens, so a user with long ones still gets more; with one slot it is fifo.
    """

    def user_key(self, user: str | None, step: Step) -> float:
        return step.active(user)

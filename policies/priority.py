"""Strict priority, as in vLLM's `--scheduling-policy priority`.

Source: A. Cobham, Priority Assignment in Waiting Line Problems, Operations Research 2, 1954; vLLM's scheduler.
"""

from dataclasses import dataclass

from replay.scheduler import Ordered, Request, Step, policy


@policy("priority")
@dataclass
class Priority(Ordered):
    """The most urgent request is admitted first, and the least urgent is evicted first.

    A waiting request never evicts a running one: it waits for a slot, however urgent.

    Does badly: the least urgent may wait for ever, and at full slots the most urgent wait for anybody to finish.
    """

    def key(self, request: Request, step: Step) -> float:
        return -request.urgency

    def run_key(self, request: Request, step: Step) -> tuple[float, ...]:
        return (-request.urgency, request.due, request.row)

"""Longest job first: a control, which must come out last in mean latency wherever there is a queue.

Source: the reverse of the order that W. E. Smith proves the best in the mean, Various Optimizers for Single-Stage
Production, Naval Research Logistics Quarterly 3, 1956.
"""

from dataclasses import dataclass

from replay.scheduler import Ordered, Request, Step, policy


@policy("ljf")
@dataclass
class Ljf(Ordered):
    """Whoever is expected to generate the most tokens is admitted first, by the guess when it began to wait.

    Does badly: every short request waits behind every long one, so the mean latency is the worst that an order can
    bring. Only the last of a batch of work that is all there at once may end sooner.
    """

    def key(self, request: Request, step: Step) -> float:
        return -step.expected_tokens(request)

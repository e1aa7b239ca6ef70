"""Shortest remaining processing time: the optimum of a single machine with known lengths and free preemption.

Source: L. Schrage, A Proof of the Optimality of the Shortest Remaining Processing Time Discipline, Operations
Research 16, 1968.
"""

from dataclasses import dataclass

from replay.scheduler import Ranked, Request, Step, policy


@policy("srpt")
@dataclass
class Srpt(Ranked):
    """Whoever is expected to have the fewest tokens left to generate goes first, and may take a running one's place.

    Of those who run, that is what the length predictor says at each step; of those who wait, what it said when they
    began to.

    Does badly: long requests may wait for ever; where memory is short and evicted work is computed again, the
    evictions cost more than the order brings.
    """

    def key(self, request: Request, step: Step) -> tuple[float, ...]:
        return (step.expected_tokens(request) - request.generated,)

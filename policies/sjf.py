"""Shortest job first, with ageing: the least mean wait that an order can bring where nobody is interrupted.

Source: W. E. Smith, Various Optimizers for Single-Stage Production, Naval Research Logistics Quarterly 3, 1956; for
LLM serving H. Qiu et al., Efficient Interactive LLM Serving with Proxy Model-based Sequence Length Prediction, AIOps
workshop at ASPLOS, 2024 (arXiv 2404.08509).
"""

from dataclasses import dataclass, field

from replay.scheduler import Ordered, Request, Step, policy


@policy("sjf")
@dataclass
class Sjf(Ordered):
    """Whoever is expected to generate the fewest tokens is admitted first.

    With `ageing` a > 0, the rank is expected tokens - a * seconds waited: one is only overtaken by those who are due
    less than expected tokens / a seconds after it. As all waiting requests age alike, expected + a * due orders the
    same and never changes. What is expected is asked when a request begins to wait; later guesses do not move it.

    Does badly: without ageing, long requests may wait for ever; with no queue, or no notion of lengths, it is fifo.
    """

    ageing: float = field(default=0.0, metadata={"minimum": 0, "help": "tokens forgiven for each second of waiting"})

    def key(self, request: Request, step: Step) -> float:
        return step.expected_tokens(request) + self.ageing * request.due

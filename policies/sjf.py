"""Shortest job first, with ageing; for LLM serving: Qiu et al., SSJF, 2024 (arXiv 2404.08509)."""

from dataclasses import dataclass, field

from replay.scheduler import Ordered, Request, Step, policy


@policy("sjf")
@dataclass
class Sjf(Ordered):
    """Whoever is expected to generate the fewest tokens is admitted first.

    With `ageing` a > 0, the rank is expected tokens - a * seconds waited, so that nobody is overtaken for longer than
    expected tokens / a. As all waiting requests age alike, expected + a * due orders the same and never changes.

    Does badly: without ageing, long requests may wait for ever; with no queue, or no notion of lengths, it is fifo.
    """

    ageing: float = field(default=0.0, metadata={"minimum": 0, "help": "tokens forgiven for each second of waiting"})

    def key(self, request: Request, step: Step) -> float:
        return step.expected_tokens(request) + self.ageing * request.due

"""TRAIL: shortest remaining first, with preemption only while a request is young.

Source: Shahout et al., Don't Stop Me Now: Embedding Based Scheduling for LLMs, ICLR 2025 (arXiv 2410.01035); c = 0.8 is
what the paper used, as the authors' code says.
"""

from dataclasses import dataclass, field
from math import floor

from replay.scheduler import Ranked, Request, Step, policy


@policy("trail")
@dataclass
class Trail(Ranked):
    """Whoever is expected to have the fewest tokens left goes first, but none is evicted past `c` of its first guess.

    The guess at what is left is the predictor's of the moment, or of when one who waits began to. How long a request
    may be evicted goes by the one made when it arrived: once floor(c * guess) tokens are generated it stays, and goes
    before those who may be evicted. It gives way only where blocks are so short that nobody could go on. c = 0 is sjf
    without preemption; with true lengths c = 1 is srpt.

    Does badly: all long requests are young for a while, so where evicted work is computed again they still thrash; and
    a guess that is far too short makes a long request untouchable.
    """

    c: float = field(default=0.8, metadata={"minimum": 0, "help": "share of the first guess from which it stays"})

    def on_arrival(self, request: Request, step: Step) -> None:
        request.memory["trail"] = floor(self.c * step.expected_tokens(request))

    def pinned(self, request: Request, step: Step) -> bool:
        return request.generated >= int(request.memory["trail"])

    def key(self, request: Request, step: Step) -> tuple[float, ...]:
        stays = request.state == "running" and self.pinned(request, step)
        return (0.0 if stays else 1.0, step.expected_tokens(request) - request.generated)

"""Highest response ratio next: shortest job first that lets nobody starve.

Source: P. Brinch Hansen, An Analysis of Response Ratio Scheduling, IFIP Congress, 1971.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from replay.scheduler import Ordered, Request, Step, policy


@policy("hrrn")
@dataclass
class Hrrn(Ordered):
    """Whoever has the highest (seconds waited + seconds of service) / seconds of service is admitted first.

    Service is what the request takes alone, by the engine's cost model: its prompt in one step, then a step for each
    further token that is expected of it. The ratio of everybody who waits grows without bound, that of short ones the
    fastest. So the key is dynamic: all who wait are ranked anew in each step in which somebody may join.

    Does badly: a step costs as much as there are requests waiting (less where there are more than `fifo_above`: then no
    ratios are computed); and, as sjf, it is only as good as what is known of lengths.
    """

    dynamic: ClassVar[bool] = True

    fifo_above: int | None = field(
        default=None,
        metadata={
            "minimum": 0,
            "example": 256,
            "help": "with more waiting than this, first come, first served; unset: never",
        },
    )

    def key(self, request: Request, step: Step) -> float:
        if self.fifo_above is not None and step.waiting_count > self.fifo_above:
            return request.due
        service = self.service(request, step)
        return -(step.now - request.due + service) / service

    def service(self, request: Request, step: Step) -> float:
        """Seconds that `request` takes with the engine to itself."""
        prompt = request.prompt_tokens
        decodes = step.expected_tokens(request) - 1
        return step.seconds(prefill=prompt, context=prompt) + decodes * step.seconds(decode=1, context=prompt)

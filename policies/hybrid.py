"""Priority and waiting time in one rank: priority with linear ageing.

Source: J. R. Jackson, Queues with Dynamic Priority Discipline, Management Science 8, 1961.
"""

from dataclasses import dataclass, field

from replay.scheduler import Ordered, Request, Step, policy


@policy("hybrid")
@dataclass
class Hybrid(Ordered):
    """One level of priority is worth `band_s` seconds of waiting.

    One is only overtaken by those who are due no more than `band_s` seconds after it for each level that they are more
    urgent. All waiting requests age alike, so the rank due - band_s * urgency never changes while they wait.

    Does badly: where load outlasts the bands, it drifts towards fifo; where it does not, towards priority.
    """

    band_s: float = field(default=30.0, metadata={"minimum": 0, "help": "seconds of waiting that one level is worth"})

    def key(self, request: Request, step: Step) -> float:
        return request.due - self.band_s * request.urgency

    def run_key(self, request: Request, step: Step) -> tuple[float, ...]:
        return (self.key(request, step), request.due, request.row)

"""Service in random order: a control, for a win over it alone is no win.

Source: J. F. C. Kingman, The Effect of Queue Discipline on Waiting Time Variance, Mathematical Proceedings of the
Cambridge Philosophical Society 58, 1962: the mean wait is the same in every order that does not look at lengths.
"""

from dataclasses import dataclass

from replay.scheduler import Ordered, Request, Step, policy


@policy("random")
@dataclass
class Random(Ordered):
    """Each request draws a lot when it begins to wait, and the smallest lot is admitted first.

    It keeps its lot when it is evicted. The lots come from the seed of the cell.

    Does badly: nobody can say how long a request will wait, and it knows neither lengths nor priorities.
    """

    def key(self, request: Request, step: Step) -> float:
        if "random" not in request.memory:
            request.memory["random"] = step.random.random()
        lot: float = request.memory["random"]
        return lot

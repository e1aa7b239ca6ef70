"""Last come, first served: a control, and what some servers turn to when they are overloaded.

Source: J. F. C. Kingman, The Effect of Queue Discipline on Waiting Time Variance, Mathematical Proceedings of the
Cambridge Philosophical Society 58, 1962; D. G. Tambouratzis, On a Property of the Variance of the Waiting Time of a
Queue, Journal of Applied Probability 5, 1968.
"""

from dataclasses import dataclass

from replay.scheduler import Ordered, Request, Step, policy


@policy("lifo")
@dataclass
class Lifo(Ordered):
    """Whoever was due last is admitted first.

    The mean wait of requests of like length is that of fifo, with the greatest variance that any order can have: of
    fifo it is the least. Those due at once go by row, as everywhere.

    Does badly: where more comes than goes, whoever is not served at once waits until the crowd is gone.
    """

    def key(self, request: Request, step: Step) -> float:
        return -request.due

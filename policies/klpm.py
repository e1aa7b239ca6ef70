"""k-LPM: longest prefix match, and now and then the oldest.

Source: Dexter et al., LLM Query Scheduling with Prefix Reuse and Latency Constraints, NeurIPS 2025 (arXiv 2502.04677).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from replay.scheduler import Ordered, PrefixAware, Request, Step, policy


@policy("klpm")
@dataclass
class KLpm(PrefixAware):
    """After `k` requests by longest prefix match comes the oldest, and so on.

    The count goes on from step to step. With k = 0 it is fifo, and without end it is lpm. Whoever is q-th in line when
    it comes is admitted within (k + 1) q admissions. The paper's k is said to be larger by 1, for the oldest, who goes
    first there; this was not read in the paper itself.

    Does badly: the oldest may drive a prefix out of the cache that the next would have found.
    """

    k: int = field(default=4, metadata={"minimum": 0, "help": "picks by prefix between two of the oldest"})
    _picks: int = field(default=0, init=False, repr=False)

    def order(self, step: Step) -> Iterator[Request]:
        oldest, longest = Ordered.order(self, step), self.by_prefix(step)
        while True:
            picks = longest if self._picks % (self.k + 1) < self.k and self.looks(step) else oldest
            request = next((one for one in picks if one.state == "waiting"), None)
            if request is None:
                return
            yield request
            self._picks += request.state == "running"

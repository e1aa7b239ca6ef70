"""First come, first served: the order of vLLM, Orca and every queue at a counter.

Source: W. Kwon et al., Efficient Memory Management for Large Language Model Serving with PagedAttention, SOSP, 2023
(arXiv 2309.06180).
"""

from dataclasses import dataclass

from replay.scheduler import Ordered, policy


@policy("fifo")
@dataclass
class Fifo(Ordered):
    """Whoever was due first is admitted first.

    Does badly: a long request in front holds up the short ones behind it, and a user who asks more gets more.
    """

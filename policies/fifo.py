"""First come, first served: the order of vLLM, Orca and every queue at a counter."""

from dataclasses import dataclass

from replay.scheduler import Ordered, policy


@policy("fifo")
@dataclass
class Fifo(Ordered):
    """Whoever was due first is admitted first.

    Does badly: a long request in front holds up the short ones behind it, and a user who asks more gets more.
    """

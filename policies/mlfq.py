"""Multi-level feedback queue: short jobs first, without knowing which are short.

Source: F. Corbató, M. Merwin-Daggett, R. Daley, An Experimental Time-Sharing System, AFIPS Spring Joint Computer
Conference, 1962.
"""

from dataclasses import dataclass

from replay.scheduler import Levelled, policy


@policy("mlfq")
@dataclass
class Mlfq(Levelled):
    """Everybody begins at the top level, and goes a level down with each quantum of service it has had.

    A level's quantum is `ratio` times that of the one above. Who is at a lower level is paused, or evicted where slots
    or blocks are short, for one at a higher level; within a level, whoever was due first goes first.

    Does badly: long requests wait as long as new ones keep coming, and stall in the middle of their answers. Where
    memory is short and evicted work is computed again, it is slower than fifo.
    """

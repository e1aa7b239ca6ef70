"""Orca: the first scheduler that decided anew at every iteration, with memory reserved for the longest answer.

Source: G.-I. Yu et al., Orca: A Distributed Serving System for Transformer-Based Generative Models, OSDI, 2022.
"""

from dataclasses import dataclass, field

from replay.scheduler import ADMISSION, Admission, Ordered, policy


@policy("orca")
@dataclass
class Orca(Ordered):
    """First come, first served, and nobody joins before its prompt and all of its `max_tokens` are reserved.

    So nobody is evicted, and nobody passes one who does not fit. With the default of fifo, which reserves nothing,
    `max_tokens` says nothing; here it decides how many run.

    Does badly: where answers are shorter than declared, most of the pool is reserved and never used.
    """

    admission: str | Admission = field(default="reserve_max", kw_only=True, metadata=ADMISSION)

"""Admission rules: whether a waiting request may join those who run, as far as the memory that it will need goes.

A rule is an option of every policy that admits in order (`admission = "past_future"`). It does not say whose turn it
is, and it is asked only where something runs: an empty engine admits whoever is next, or nothing would ever move.
Static and dynamic mode reserve memory for a batch by themselves, and ask no rule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from replay.registry import Registry
from replay.request import Request
from replay.scheduler.listener import Listener
from replay.scheduler.step import Step


class Admission(Listener, ABC):
    """A rule. It is a dataclass: its fields are its settings in an experiment, and one object serves one cell."""

    headroom: ClassVar[bool] = True
    """Whether the step's own guard holds too: room for the whole prompt, and a block for each resident to grow."""

    @abstractmethod
    def admits(self, request: Request, step: Step) -> bool:
        """Whether `request`, which waits and is next, may join the residents of `step`."""


admissions: Registry[Callable[..., Admission]] = Registry("admission rule")


@admissions.register("headroom")
@dataclass
class Headroom(Admission):
    """Who joins finds room for its whole prompt, and leaves a block for each resident to grow: the default.

    Does badly: it looks a block ahead and no further, so long answers may still run out of blocks.
    """

    def admits(self, request: Request, step: Step) -> bool:
        return True  # the step's guard is all of it


@admissions.register("aggressive")
@dataclass
class Aggressive(Admission):
    """Whoever's next tokens fit now may join, with `watermark` of the pool kept free, as in vLLM.

    Source: Kwon et al., PagedAttention, SOSP 2023; vLLM's scheduler, whose watermark was 1 %.

    Does badly: residents outgrow the pool together, and are evicted, admitted and computed again and again.
    """

    headroom: ClassVar[bool] = False
    watermark: float = field(
        default=0.01,
        metadata={"minimum": 0, "below": 1, "help": "share of the pool's blocks that admission leaves free"},
    )

    def admits(self, request: Request, step: Step) -> bool:
        return step.free_blocks - step.new_blocks(request) >= int(self.watermark * step.blocks)


@admissions.register("reserve_max")
@dataclass
class ReserveMax(Admission):
    """Who joins finds room for its prompt and all of its `max_tokens`, beside all that each resident may still become.

    So nobody is ever evicted for want of blocks. Blocks that are shared through the prefix cache count once. One that
    declares more than the pool holds runs alone.

    Source: Yu et al., Orca, OSDI 2022; GUARANTEED_NO_EVICT in TensorRT-LLM's batch manager.

    Does badly: where answers are shorter than declared, most of the pool is reserved and never used.
    """

    headroom: ClassVar[bool] = False  # all that the guard asks for is reserved already

    def admits(self, request: Request, step: Step) -> bool:
        promised = sum(step.blocks_to_reach(one, _most(one)) for one in step.running)
        return promised + step.blocks_to_reach(request, _most(request)) <= step.free_blocks


def _most(request: Request) -> int:
    """Tokens that a request holds if its answer gets as long as it declares."""
    return request.prompt_tokens + request.max_tokens

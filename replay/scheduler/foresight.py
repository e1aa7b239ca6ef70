"""Admission rules that look ahead to the fullest moment: the most blocks that those who run will ever hold together.

Nobody's answer is at its longest when everybody's is: the short ones are over, and their blocks are free, before the
long ones have grown. How long an answer gets is each rule's own guess; the arithmetic is the same, and is in blocks.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from replay.request import Request
from replay.scheduler.admission import Admission, admissions
from replay.scheduler.step import Step


class Outlook:
    """What the residents, and one who may join them, will need. Nobody else is foreseen: who joins later is asked then.

    Steps count from the one that is planned, which is 0. It counts on decodes that get a token in every step, and on
    prompts that get what budget these leave: so a next token comes in step `soonest` or later, up to `latest`. Where
    nothing is known of a request's pace, it counts as long as it will ever be. A block that several hold is free again,
    as far as this goes, when one of them has left who held it alone: rather too late than too soon.
    """

    def __init__(self, request: Request, step: Step) -> None:
        self.requests = [*step.running, request]
        self._block_size = step.block_size
        todo = request.context - (step.prefix_hit(request) or request.computed)
        lacking = [one.todo - step.scheduled(one) for one in step.running]
        lacking.append(todo - min(todo, todo if step.budget is None else step.budget))
        prompts = sum(tokens for one, tokens in zip(self.requests, lacking, strict=True) if one.prefilling)
        limit, others = step.most_tokens, len(step.running)
        steady = others < step.most_scheduled and (limit is None or others < limit)
        paces = [(0.0, 0.0 if steady else math.inf)] * len(lacking)
        for place, one in enumerate(self.requests):
            if lacking[place] and not one.prefilling:
                paces[place] = (0.0, math.inf)  # a decode that was passed over, who knows for how long
            elif lacking[place] and steady and limit is not None:
                paces[place] = (-(-lacking[place] // limit), -(-prompts // (limit - others)))
        self._soonest, self._latest = np.array(paces).T
        self._context = np.array([one.context for one in self.requests])
        shared = -(-request.context // step.block_size) - step.blocks_to_reach(request, request.context)
        self._held = np.array([*map(step.holds, step.running), shared])  # blocks that cost nothing any more
        self._freed = np.array([*map(step.freed_by, step.running), 0])  # and those that would be free if it left now

    def fits(self, rest: Sequence[int], room: int) -> bool:
        """Whether `room` further blocks are enough, with so many tokens of each answer still to come."""
        more = np.array(rest) - 1
        end = self._latest + more
        at = end[:, None]  # it is fullest when somebody is about to leave
        there = end >= at
        grown = np.where(np.isinf(self._latest), more, np.clip(at - self._soonest, 0, more))
        growth = np.maximum(0, -(-(self._context + grown) // self._block_size) - self._held)
        left = (~there * self._freed).sum(axis=1) - there[:, -1] * self._held[-1]  # which the newcomer may hold on
        return bool(((there * growth).sum(axis=1) - np.maximum(0, left) <= room).all())


@admissions.register("future_peak")
@dataclass
class FuturePeak(Admission):
    """Who joins leaves the fullest moment to come within the pool, with answers as long as the length predictor says.

    With the predictor `oracle` nobody is evicted, if the policy runs decodes first and gives prompts all that is left.

    Source: the router of LightLLM (ModelTC), which estimates the peak of the tokens held; here it is in whole blocks.

    Does badly: it believes the predictor, so with answers longer than predicted residents run out of blocks, and with
    the predictor `max_tokens` it admits hardly more than `reserve_max`.
    """

    headroom: ClassVar[bool] = False  # whole prompts and all growth are foreseen

    def admits(self, request: Request, step: Step) -> bool:
        outlook = Outlook(request, step)
        expected = [min(math.ceil(step.expected_tokens(one)), one.max_tokens) for one in outlook.requests]
        rest = [tokens - one.generated for tokens, one in zip(expected, outlook.requests, strict=True)]
        return outlook.fits(rest, step.free_blocks)


@admissions.register("past_future")
@dataclass
class PastFuture(Admission):
    """Who joins leaves the fullest moment to come within the pool, with the lengths of recent answers, drawn at random.

    Each answer's length is drawn from the last `window` answers that are longer than what it has already. `samples`
    futures are drawn, and each must fit, with `reserve` of the pool kept free. At first half of the window is filled
    with answers as long as declared; they count too until real ones have pushed them out. Where no recent answer is
    longer, it is as long as declared. The length predictor is not asked.

    Source: Gong et al., Past-Future Scheduler for LLM Serving under SLA Guarantees, ASPLOS 2025 (arXiv 2507.10150).

    Does badly: after a change of load it expects the lengths of before, for as long as the window lasts; and as it
    draws anew in every step, whoever waits is let in by a lucky draw in the end.
    """

    headroom: ClassVar[bool] = False
    window: int = field(default=200, metadata={"minimum": 1, "help": "recent answers whose lengths count"})
    samples: int = field(default=5, metadata={"minimum": 1, "help": "futures that are drawn, each of which must fit"})
    reserve: float = field(
        default=0.05, metadata={"minimum": 0, "below": 1, "help": "share of the pool's blocks that is kept free"}
    )

    _recent: deque[int | None] = field(init=False, repr=False)  # None: as long as declared
    _lengths: list[int] = field(default_factory=list, init=False, repr=False)  # those of the window, in order

    def __post_init__(self) -> None:
        self._recent = deque([None] * (self.window // 2))

    def admits(self, request: Request, step: Step) -> bool:
        outlook, room = Outlook(request, step), step.free_blocks - int(self.reserve * step.blocks)
        shorter = [bisect_right(self._lengths, one.generated) for one in outlook.requests]
        for _ in range(self.samples):
            futures = zip(outlook.requests, shorter, strict=True)
            if not outlook.fits([self._draw(one, first, step) - one.generated for one, first in futures], room):
                return False
        return True

    def on_finish(self, request: Request, step: Step) -> None:
        if request.status != "completed":
            return
        self._recent.append(request.generated)
        insort(self._lengths, request.generated)
        if len(self._recent) > self.window and (oldest := self._recent.popleft()) is not None:
            del self._lengths[bisect_left(self._lengths, oldest)]

    def _draw(self, request: Request, shorter: int, step: Step) -> int:
        """How long the answer of `request` may get in all, of which `shorter` recent ones were no longer than it is."""
        drawn = shorter + int(step.random.random() * (len(self._recent) - shorter))
        return min(self._lengths[drawn], request.max_tokens) if drawn < len(self._lengths) else request.max_tokens

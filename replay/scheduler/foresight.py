"""Admission rules that look ahead to the fullest moment: the most blocks that those who run will ever hold together.

Nobody's answer is at its longest when everybody's is: the short ones are over, and their blocks are free, before the
long ones have grown. How long an answer gets is each rule's own guess; the arithmetic is the same, and is in blocks.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from replay.request import Request
from replay.scheduler.admission import Admission, admissions
from replay.scheduler.step import Step


@dataclass(slots=True)
class Stay:
    """A request's stay in the pool, to come. Steps count from the one that is planned, which is 0.

    Its next token comes in step `soonest` or later, up to `latest`, and from then on one in every step. With a `latest`
    of infinity nothing is known of its pace, and it counts as long as it will ever be.
    """

    request: Request
    held: int  # blocks that cost nothing any more: its own, or a newcomer's that residents hold already
    freed: int  # blocks that nobody would hold if it left now
    soonest: int
    latest: float
    rest: int = 1  # tokens of its answer to come, the next included: a guess

    @property
    def end(self) -> float:
        """The last step in which it may hold anything."""
        return self.latest + self.rest - 1

    def growth(self, at: float, block_size: int) -> int:
        """Blocks that it may hold in step `at` beside those that are held already."""
        more = self.rest - 1 if math.isinf(self.latest) else int(max(0, min(at - self.soonest, self.rest - 1)))
        return max(0, -(-(self.request.context + more) // block_size) - self.held)


class Outlook:
    """What the residents, and one who may join them, will need. Nobody else is foreseen: who joins later is asked then.

    It counts on decodes that get a token in every step, and on prompts that get what budget these leave. Where there
    are more requests than one step serves, everybody counts as long as it will ever be. A block that several hold is
    free again, as far as this goes, when one of them has left who held it alone: rather too late than too soon.
    """

    def __init__(self, request: Request, step: Step) -> None:
        self._block_size = step.block_size
        cached = -(-request.context // step.block_size) - step.blocks_to_reach(request, request.context)
        todo = request.context - (step.prefix_hit(request) or request.computed)
        lacking = {one.row: one.todo - step.scheduled(one) for one in step.running}
        lacking[request.row] = todo - min(todo, todo if step.budget is None else step.budget)
        prompts = sum(lacking[one.row] for one in (*step.running, request) if one.prefilling)
        limit, others = step.most_tokens, len(lacking) - 1
        steady = others < step.most_scheduled and (limit is None or others < limit)
        self._stays = []
        for one in (*step.running, request):
            soonest, latest = 0, 0.0 if steady else math.inf
            if lacking[one.row] and not one.prefilling:
                latest = math.inf  # a decode that was passed over, who knows for how long
            elif lacking[one.row] and steady and limit is not None:
                soonest, latest = -(-lacking[one.row] // limit), -(-prompts // (limit - others))
            held, freed = (cached, 0) if one is request else (step.holds(one), step.freed_by(one))
            self._stays.append(Stay(one, held, freed, soonest, latest))
        self._newcomer = self._stays[-1]

    def fits(self, rest: Callable[[Request], int], room: int) -> bool:
        """Whether `room` further blocks are enough, with `rest(request)` tokens of each answer still to come."""
        for stay in self._stays:
            stay.rest = rest(stay.request)
        if sum(stay.growth(math.inf, self._block_size) for stay in self._stays) <= room:
            return True  # even if nobody left
        self._stays.sort(key=lambda stay: stay.end)
        freed = left = 0
        for stay in self._stays:  # it is fullest when somebody is about to leave
            while self._stays[left].end < stay.end:
                freed += self._stays[left].freed
                left += 1
            wanted = sum(one.growth(stay.end, self._block_size) for one in self._stays[left:])
            kept = self._newcomer.held if self._newcomer.end >= stay.end else 0  # of what those who left held with it
            if wanted - max(0, freed - kept) > room:
                return False
        return True


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
        def rest(one: Request) -> int:
            return min(math.ceil(step.expected_tokens(one)), one.max_tokens) - one.generated

        return Outlook(request, step).fits(rest, step.free_blocks)


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

        def rest(one: Request) -> int:
            return self._draw(one, step) - one.generated

        return all(outlook.fits(rest, room) for _ in range(self.samples))

    def on_finish(self, request: Request, step: Step) -> None:
        if request.status != "completed":
            return
        self._recent.append(request.generated)
        insort(self._lengths, request.generated)
        if len(self._recent) > self.window and (oldest := self._recent.popleft()) is not None:
            del self._lengths[bisect_left(self._lengths, oldest)]

    def _draw(self, request: Request, step: Step) -> int:
        """How long the answer of `request` may get in all."""
        longer = bisect_right(self._lengths, request.generated)
        drawn = step.random.randrange(longer, len(self._recent) + (longer == len(self._recent)))
        return min(self._lengths[drawn], request.max_tokens) if drawn < len(self._lengths) else request.max_tokens

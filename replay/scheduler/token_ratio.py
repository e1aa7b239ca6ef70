"""The admission rule of SGLang: a share of what residents may still generate is reserved, and the share learns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from replay.request import Request
from replay.scheduler.admission import Admission, admissions
from replay.scheduler.step import Step


@admissions.register("sglang_ratio")
@dataclass
class TokenRatio(Admission):
    """Who joins finds room for its prompt and `max_tokens`, beside a share of what each resident may still generate.

    The share begins at `initial`, falls with each decode step, in a line that would reach its least after
    `decay_steps`, and jumps when somebody is evicted: to what those who are left have generated, and `retract_steps`
    more each, of what they may. It begins anew when nothing is left to do. Those who join in the same step are counted
    in full. It is reckoned in blocks, where SGLang adds a page to each newcomer's tokens; a resident prompt that is not
    yet computed is reserved whole.

    Source: Zheng et al., SGLang, NeurIPS 2024 (arXiv 2312.07104); its new_token_ratio, in PrefillAdder and
    retract_decode.

    Does badly: one share for all, whatever their lengths; a burst of evictions makes it timid for hundreds of steps.
    """

    headroom: ClassVar[bool] = False
    initial: float = field(default=0.7, metadata={"above": 0, "maximum": 1, "help": "the share at first"})
    floor: float = field(
        default=0.14, metadata={"minimum": 0, "maximum": 1, "help": "the least share, as a part of `initial`"}
    )
    decay_steps: int = field(
        default=600, metadata={"minimum": 1, "help": "decode steps without an eviction from `initial` to the least"}
    )
    retract_steps: int = field(
        default=20, metadata={"minimum": 0, "help": "tokens that each may go on for after an eviction"}
    )
    most: int = field(
        default=4096, metadata={"minimum": 1, "help": "tokens of an answer that are reserved for at most"}
    )

    ratio: float = field(init=False, repr=False)
    _decayed: int | None = field(default=None, init=False, repr=False)  # the last step that counted

    def __post_init__(self) -> None:
        self.ratio = self.initial

    @property
    def least(self) -> float:
        """The share never falls below."""
        return self.initial * self.floor

    def admits(self, request: Request, step: Step) -> bool:
        reserved = sum(
            self._reserved(one, step, 1.0 if one.row in step.admitted else self.ratio) for one in step.running
        )
        return reserved + self._reserved(request, step, 1.0) <= step.free_blocks

    def on_arrival(self, request: Request, step: Step) -> None:
        if not step.residents and step.waiting_count == 1:
            self.ratio = self.initial  # there was nothing to do

    def on_tokens(self, request: Request, tokens: int, new: int, seconds: float, step: Step) -> None:
        decodes = tokens == new == 1 and len(request.token_times) > 1  # a prompt may be one token long
        if decodes and not step.evicted and step.number != self._decayed:
            self._decayed = step.number
            self.ratio = max(self.least, self.ratio - (self.initial - self.least) / self.decay_steps)

    def on_evict(self, request: Request, step: Step) -> None:
        if left := step.running:
            done = sum(one.generated + self.retract_steps for one in left)
            share = done / (sum(one.max_tokens for one in left) + 1)
            self.ratio = min(1.0, max(self.least, share))

    def _reserved(self, request: Request, step: Step, share: float) -> int:
        """Blocks that are kept for a request beside those that it holds."""
        rest = min(request.max_tokens - request.generated, self.most)
        return step.blocks_to_reach(request, request.context + math.ceil(share * rest))

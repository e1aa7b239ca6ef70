"""What happens to requests, told to those who keep notes of it: policies, and the admission rules that they carry.

Events only tell: a step answers False outside `schedule` and what it calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from replay.request import Request

if TYPE_CHECKING:
    from replay.scheduler.step import Step


class Listener:
    """The events of a cell, in the order in which they happen; each does nothing unless overridden."""

    def on_arrival(self, request: Request, step: Step) -> None:
        """`request` has begun to wait."""

    def on_admit(self, request: Request, step: Step) -> None:
        """`request` has become resident; again after an eviction (`request.evictions` tells)."""

    def on_tokens(self, request: Request, tokens: int, new: int, seconds: float, step: Step) -> None:
        """The step computed `tokens` tokens of `request` in `seconds`; `new` is 1 if the answer grew."""

    def on_evict(self, request: Request, step: Step) -> None:
        """`request` has lost its blocks and waits again."""

    def on_finish(self, request: Request, step: Step) -> None:
        """`request` is over; `request.status` says how."""

"""Batching modes: when requests may join the batch, what is reserved for them, how rows are laid out, when an answer
is delivered.

A mode never orders: that is the policy's part, and every policy runs under every mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from replay.clock import to_nanosecond
from replay.registry import Registry
from replay.request import Request
from replay.scheduler.batch_size import SIZE, BatchSize, Outcome, Sized
from replay.scheduler.state import State


class Mode(Protocol):
    """What the scheduler asks of a mode. A mode is a dataclass: its fields are its settings in an experiment."""

    padded: ClassVar[bool]  # rows are padded to a rectangle and held to the end of the batch, as in a plain `generate`

    @property
    def whole(self) -> bool:
        """Whether a prompt is computed in one step, never in chunks."""

    @property
    def slots(self) -> int:
        """Requests that may be resident at once, by the largest batch size there can be."""

    @property
    def scheduled(self) -> int:
        """Requests that may get tokens in one step."""

    @property
    def budget(self) -> int | None:
        """Tokens that a step may compute; None: as many as there are."""

    def size(self, state: State) -> int:
        """The batch size in force in the step that is planned now, arrivals included: asked once, 1 to `slots`."""

    def opens(self, state: State, now: float, *, size: int, more: bool) -> bool:
        """Whether waiting requests may join in this step. `more`: a further request can come before one finishes."""

    def wake(self, state: State) -> float | None:
        """When the gate opens although nothing happens: seconds since the clock's zero."""

    def reservation(self, request: Request, tokens: int) -> int:
        """Tokens of the pool that a request takes when it is admitted with `tokens` to compute."""

    def observe(self, outcome: Outcome) -> None:
        """A step was computed: what a batch size that adapts may go by."""


modes: Registry[Callable[..., Mode]] = Registry("mode")


@dataclass(slots=True, frozen=True)
class BatchToEnd(Sized):
    """What static and dynamic mode share: nobody joins or leaves between the first step of a batch and its last.

    As in a plain `generate`, prompts share no KV blocks, whether or not the engine has a prefix cache.
    """

    padded: ClassVar[bool] = True

    @property
    def whole(self) -> bool:
        return True

    @property
    def budget(self) -> int | None:
        return None

    @property
    def scheduled(self) -> int:
        return self.slots

    def reservation(self, request: Request, tokens: int) -> int:
        """The whole of it, so that no batch runs out of blocks in the middle."""
        return request.prompt_tokens + request.max_tokens


@modes.register("static")
@dataclass(slots=True, frozen=True)
class Static(BatchToEnd):
    """Waits until `batch_size` requests are there, runs them to the end of the longest, then takes the next."""

    batch_size: int | BatchSize = field(default=8, metadata=SIZE | {"help": "requests in a batch"})

    @property
    def rule(self) -> int | BatchSize:
        return self.batch_size

    def opens(self, state: State, now: float, *, size: int, more: bool) -> bool:
        if state.resident or not state.waiting:
            return False
        return len(state.waiting) >= size or not more

    def wake(self, state: State) -> float | None:
        return None


@modes.register("dynamic")
@dataclass(slots=True, frozen=True)
class Dynamic(BatchToEnd):
    """As static, but starts with fewer once the oldest request has waited `max_wait_ms`."""

    max_batch_size: int | BatchSize = field(default=8, metadata=SIZE | {"help": "requests in a batch, at most"})
    max_wait_ms: float = field(
        default=50.0,
        metadata={"minimum": 0, "help": "how long the oldest request waits for others, once due"},
    )

    @property
    def rule(self) -> int | BatchSize:
        return self.max_batch_size

    def opens(self, state: State, now: float, *, size: int, more: bool) -> bool:
        if state.resident or not state.waiting:
            return False
        if len(state.waiting) >= size:
            return True
        wake = self.wake(state)
        return wake is not None and now >= wake

    def wake(self, state: State) -> float | None:
        if state.resident or not state.waiting:
            return None
        oldest = min(request.due for request in state.waiting.values())
        return to_nanosecond(oldest + self.max_wait_ms / 1000)


@modes.register("continuous")
@dataclass(slots=True, frozen=True)
class Continuous(Sized):
    """Decides anew at every step: requests join and leave between steps."""

    padded: ClassVar[bool] = False

    max_running: int | BatchSize = field(default=8, metadata=SIZE | {"help": "resident requests, at most"})
    token_budget: int = field(default=2048, metadata={"minimum": 1, "help": "tokens that one step computes, at most"})
    prefill: Literal["chunked", "whole"] = field(
        default="chunked", metadata={"help": "whether a prompt may be computed in parts over several steps"}
    )
    max_scheduled: int | None = field(
        default=None,
        metadata={
            "minimum": 1,
            "example": 4,
            "help": "requests that get tokens in a step, at most, for policies that pause; unset: max_running",
        },
    )

    @property
    def whole(self) -> bool:
        return self.prefill == "whole"

    @property
    def rule(self) -> int | BatchSize:
        return self.max_running

    @property
    def scheduled(self) -> int:
        return self.max_scheduled or self.slots

    @property
    def budget(self) -> int | None:
        return self.token_budget

    def opens(self, state: State, now: float, *, size: int, more: bool) -> bool:
        return True

    def wake(self, state: State) -> float | None:
        return None

    def reservation(self, request: Request, tokens: int) -> int:
        """What the step computes, and no more: requests grow block by block."""
        return tokens

"""Batch sizes: a number, or a rule by which the size adapts while a cell is replayed.

A rule says how many requests may be resident from the next step on, and hears what each step took. It does not know
who they are: it orders nobody and evicts nobody, and a smaller size only stops admissions until enough have left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from replay.clock import to_nanosecond
from replay.errors import ExperimentError
from replay.registry import Registry
from replay.scheduler.state import State


@dataclass(slots=True, frozen=True)
class Load:
    """What a rule sees when a step is planned, arrivals included."""

    waiting: int
    residents: int
    kv_use: float  # share of the pool's blocks


@dataclass(slots=True, frozen=True)
class Outcome:
    """What a rule hears of a step that was computed."""

    seconds: float  # from its boundary, or the end of the step before where steps overlap, to its tokens
    decodes: int  # requests that got a token after their first
    size: int  # in force when it was planned
    residents: int
    full: bool  # a slot was what a waiting request went without


class BatchSize(Protocol):
    """A rule. It is a dataclass: its fields are its settings in an experiment, and one object serves one cell."""

    @property
    def largest(self) -> int:
        """The largest size there can be."""

    def size(self, load: Load) -> int:
        """Requests that may be resident from this step on, 1 to `largest`. Asked once for each step."""

    def observe(self, outcome: Outcome) -> None:
        """A step was computed. Where steps overlap, the next one may have been planned before."""


batch_sizes: Registry[Callable[..., BatchSize]] = Registry("batch size")
SIZE: dict[str, Any] = {"minimum": 1, "rules": batch_sizes}
"""Metadata of a setting that is a number or one of these rules."""


class Sized:
    """What all modes share: a batch size, which may be a rule that they ask and tell."""

    __slots__ = ()

    @property
    def rule(self) -> int | BatchSize:
        """The batch size as it was set."""
        raise NotImplementedError

    @property
    def slots(self) -> int:
        """Requests that may be resident at once, at most."""
        return self.rule if isinstance(self.rule, int) else self.rule.largest

    def size(self, state: State) -> int:
        """Requests that may be resident from the step on that is planned now."""
        if isinstance(self.rule, int):
            return self.rule
        pool = state.pool
        size = self.rule.size(Load(len(state.waiting), len(state.resident), 1 - pool.free_blocks / pool.blocks))
        assert 1 <= size <= self.rule.largest, "a rule keeps between 1 and its largest"
        return size

    def observe(self, outcome: Outcome) -> None:
        """A step was computed."""
        if not isinstance(self.rule, int):
            self.rule.observe(outcome)


@batch_sizes.register("adaptive")
@dataclass(slots=True, frozen=True)
class Adaptive:
    """By memory and queue: a size of its own when the KV pool is nearly full, else the more the longer the queue is.

    Above `kv_use` of the pool's blocks in use the size is `kv_size`, whatever waits; else above `long_queue` waiting
    requests it is `long_size`, above `middle_queue` it is `middle_size`, and otherwise `short_size`. The defaults are
    a rule of thumb for servers of one GPU.

    Does badly: it knows no goal; around a threshold it goes back and forth; with a short queue its size for a full pool
    is larger than the one before; where a mode runs batches to their end the pool is empty when a size matters, so only
    the queue counts, and static mode waits again for a larger batch when the queue grows past a threshold.
    """

    kv_use: float = field(
        default=0.9, metadata={"minimum": 0, "maximum": 1, "help": "share of the KV blocks: above it, kv_size"}
    )
    kv_size: int = field(default=16, metadata={"minimum": 1, "help": "requests when memory is short"})
    long_queue: int = field(default=100, metadata={"minimum": 0, "help": "waiting requests: above them, long_size"})
    long_size: int = field(default=64, metadata={"minimum": 1, "help": "requests when the queue is long"})
    middle_queue: int = field(default=20, metadata={"minimum": 0, "help": "waiting requests: above them, middle_size"})
    middle_size: int = field(default=32, metadata={"minimum": 1, "help": "requests when it is neither long nor short"})
    short_size: int = field(default=8, metadata={"minimum": 1, "help": "requests when the queue is short"})

    def __post_init__(self) -> None:
        if self.middle_queue >= self.long_queue:
            raise ExperimentError(
                f"middle_queue = {self.middle_queue} must be below long_queue = {self.long_queue}, "
                "or middle_size never comes into force"
            )

    @property
    def largest(self) -> int:
        return max(self.kv_size, self.long_size, self.middle_size, self.short_size)

    def size(self, load: Load) -> int:
        if load.kv_use > self.kv_use:
            return self.kv_size
        if load.waiting > self.long_queue:
            return self.long_size
        return self.middle_size if load.waiting > self.middle_queue else self.short_size

    def observe(self, outcome: Outcome) -> None:
        """The queue and the pool tell it all that it asks."""


@batch_sizes.register("aimd")
@dataclass(slots=True)
class Aimd:
    """Additive increase, multiplicative decrease: grows while tokens come within a goal, shrinks when they do not.

    It decides once in every `steps` decoding steps, by the mean time per token over the tokens decoded in them. Over
    `tpot_ms` the size is multiplied by `decrease` (rounded down, at least `smallest`). Within it the size grows by
    `increase` (to `largest`), but only if in one of these steps a request was left waiting because all slots were
    taken. Steps count that were planned under the present size and with no more residents than it: what is computed
    while a larger batch is still draining says nothing of the smaller one, and does not shrink it again.

    Sources: Chiu and Jain, 1989, for the rule; Crankshaw et al., Clipper, NSDI 2017, for batch sizes under a latency
    goal; RFC 2861 for not growing what was not used up.

    Does badly: it starts at `smallest` and takes `steps` steps for each increase; a prompt that is computed beside
    decodes looks like a batch that is too large; where a mode runs batches to their end it grows once a batch at most.
    """

    tpot_ms: float = field(default=50.0, metadata={"above": 0, "help": "the goal: mean time per token, in ms, at most"})
    increase: int = field(default=1, metadata={"minimum": 1, "help": "requests that it grows by"})
    decrease: float = field(default=0.5, metadata={"above": 0, "below": 1, "help": "the factor by which it shrinks"})
    smallest: int = field(default=1, metadata={"minimum": 1, "help": "requests, at least and at first"})
    largest: int = field(default=64, metadata={"minimum": 1, "help": "requests, at most"})
    steps: int = field(default=8, metadata={"minimum": 1, "help": "decoding steps from one decision to the next"})

    _size: int = field(init=False, repr=False)
    _steps: int = field(default=0, init=False, repr=False)  # since the last decision, as what follows
    _tokens: int = field(default=0, init=False, repr=False)
    _seconds: float = field(default=0.0, init=False, repr=False)  # over all tokens
    _full: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.smallest > self.largest:
            raise ExperimentError(f"smallest = {self.smallest} must not be above largest = {self.largest}")
        self._size = self.smallest

    def size(self, load: Load) -> int:
        return self._size

    def observe(self, outcome: Outcome) -> None:
        if outcome.size != self._size or outcome.residents > self._size:
            return
        self._full |= outcome.full and outcome.residents == self._size
        if not outcome.decodes:
            return
        self._steps += 1
        self._tokens += outcome.decodes
        self._seconds += outcome.seconds * outcome.decodes
        if self._steps == self.steps:
            self._decide()

    def _decide(self) -> None:
        if to_nanosecond(self._seconds / self._tokens) > self.tpot_ms / 1000:
            self._size = max(self.smallest, int(round(self._size * self.decrease, 9)))
        elif self._full:
            self._size = min(self.largest, self._size + self.increase)
        self._steps, self._tokens, self._seconds, self._full = 0, 0, 0.0, False

"""Length predictors: all that a policy may know of how long an answer will be.

A predictor is named by the experiment, and the report says which. Predictors see each finished answer; only `oracle`
sees the true length of one that is not finished.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from replay.registry import Registry
from replay.request import Request


class Predictor(Protocol):
    """Expected output tokens of a request. A predictor is a dataclass: its fields are the options."""

    def start(self, output_tokens: Sequence[int], seed: int = 0) -> None:
        """A cell begins; `output_tokens[row]` is the truth, to use only as the predictor's name says."""

    def expect(self, request: Request) -> float:
        """Output tokens, those generated included."""

    def observe(self, request: Request) -> None:
        """A request was completed with `request.generated` tokens."""


predictors: Registry[Callable[..., Predictor]] = Registry("length predictor")


@predictors.register("oracle")
@dataclass(slots=True)
class Oracle:
    """The true length: an upper bound on what knowing lengths can bring."""

    _truth: Sequence[int] = field(default=(), init=False)

    def start(self, output_tokens: Sequence[int], seed: int = 0) -> None:
        self._truth = output_tokens

    def expect(self, request: Request) -> float:
        return self._truth[request.row]

    def observe(self, request: Request) -> None:
        pass


@predictors.register("max_tokens")
@dataclass(slots=True)
class MaxTokens:
    """What the client declared: says nothing where everybody leaves the default."""

    def start(self, output_tokens: Sequence[int], seed: int = 0) -> None:
        pass

    def expect(self, request: Request) -> float:
        return request.max_tokens

    def observe(self, request: Request) -> None:
        pass


@predictors.register("user_mean")
@dataclass(slots=True)
class UserMean:
    """The mean of the user's last `last` answers; of everybody's until the user has one; of nothing: max_tokens."""

    last: int = field(default=5, metadata={"minimum": 1, "help": "answers of a user that count"})
    _by_user: dict[str | None, deque[int]] = field(init=False)
    _total: int = field(default=0, init=False)
    _count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.start(())

    def start(self, output_tokens: Sequence[int], seed: int = 0) -> None:
        self._by_user = defaultdict(lambda: deque(maxlen=self.last))
        self._total = self._count = 0

    def expect(self, request: Request) -> float:
        recent = self._by_user.get(request.user)
        if recent:
            return sum(recent) / len(recent)
        return self._total / self._count if self._count else request.max_tokens

    def observe(self, request: Request) -> None:
        self._by_user[request.user].append(request.generated)
        self._total += request.generated
        self._count += 1

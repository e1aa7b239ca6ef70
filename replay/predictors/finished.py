"""Predictors that see finished answers, and what the client declared; never how long an answer is going to be."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from replay.predictors.predictor import Knows, predictors
from replay.request import Request


@predictors.register("max_tokens")
@dataclass(slots=True)
class MaxTokens:
    """What the client declared: says nothing where everybody leaves the default."""

    knows: ClassVar[Knows] = "nothing"

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

    knows: ClassVar[Knows] = "nothing"

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


@predictors.register("history")
@dataclass(slots=True)
class History:
    """The mean of those of everybody's last `last` answers that are longer than this one is already.

    So it grows with the answer, and is always more than generated. Where no answer was longer: max_tokens.
    """

    knows: ClassVar[Knows] = "nothing"

    last: int = field(default=200, metadata={"minimum": 1, "help": "answers that count, of all users"})
    _recent: deque[int] = field(init=False)
    _lengths: list[int] = field(init=False)  # the recent ones, in order

    def __post_init__(self) -> None:
        self.start(())

    def start(self, output_tokens: Sequence[int], seed: int = 0) -> None:
        self._recent, self._lengths = deque(), []

    def expect(self, request: Request) -> float:
        longer = self._lengths[bisect_right(self._lengths, request.generated) :]
        return min(sum(longer) / len(longer), request.max_tokens) if longer else request.max_tokens

    def observe(self, request: Request) -> None:
        self._recent.append(request.generated)
        insort(self._lengths, request.generated)
        if len(self._recent) > self.last:
            del self._lengths[bisect_left(self._lengths, self._recent.popleft())]

"""The file that a generated trace is declared in: its words, and the sentences where one of them is wrong.

It draws nothing; what the words come to is in the modules beside it.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from replay.errors import ExperimentError
from replay.registry import nearest
from replay.traces.generating.gaps import NARROWEST, FamilyName
from replay.traces.generating.lengths import Lengths, Times
from replay.traces.generating.rates import Phase
from replay.traces.generating.sections import TICK, Duration, Section, Stretch, spec_fault
from replay.traces.generating.zipf import Share


class Prefix(Section):
    """A shared beginning of prompts, such as a system prompt; whole blocks of `block_size` tokens.

    With `copies`, so many different ones of that length: each request that begins with it has one of them.
    """

    name: str
    tokens: int = Field(ge=1)
    copies: int = Field(default=1, ge=1)


class Sessions(Section):
    """Conversations or programs: a request comes `think_ms` after the one before it in its session was answered."""

    turns: Lengths
    think_ms: Times = Times(fixed=0.0)


class User(Section):
    """One user: how many requests (or how many a second), how bursty, how long, how urgent.

    `burstiness` is the coefficient of variation of the gaps, which are gamma- or Weibull-distributed: 1 is Poisson.
    `phases` follow each other: one that does not say how long it `lasts` goes on to the end, and where all say it, they
    begin again. `start` and `stop` bound the time in which the user is there at all. `prompt` is what comes after the
    prefix, which a share `prefix_share` of the requests have. With `sessions`, it is sessions that begin at the times
    drawn. With `copies`, there are so many users like this one, named `name-1`, `name-2` and so on; with a `share`
    among them, what is declared is for all of them together.
    """

    name: str
    copies: int = Field(default=1, ge=1)
    share: Share | None = None
    count: int | None = Field(default=None, ge=1)
    rate: float | None = Field(default=None, gt=0)
    phases: list[Phase] | None = Field(default=None, min_length=1)
    start: Duration = 0
    stop: Duration | None = None
    burstiness: float = Field(default=1.0, gt=0, le=10)
    gaps: FamilyName = "gamma"
    prompt: Lengths
    output: Lengths
    max_tokens: int | None = Field(default=None, ge=1)
    priority: int | None = None
    deadline_ms: float | None = Field(default=None, gt=0)
    slo: str | None = None
    prefix: str | None = None
    prefix_share: float = Field(default=1.0, ge=0, le=1)
    sessions: Sessions | None = None

    @model_validator(mode="after")
    def consistent(self) -> User:
        if sum(given is not None for given in (self.count, self.rate, self.phases)) != 1:
            raise ValueError("give either count (requests in all) or rate (requests per second), or phases")
        phases = self.phases or []
        for place, phase in enumerate(phases):
            if phase.lasts is None and place < len(phases) - 1:
                raise ValueError(f"phases.{place}: only the last phase may do without lasts")
            if (phase.gaps or self.gaps) == "weibull" and (phase.burstiness or self.burstiness) < NARROWEST:
                raise ValueError(f"phases.{place}: burstiness must be {NARROWEST} or more where gaps are weibull")
        if self.gaps == "weibull" and self.burstiness < NARROWEST:
            raise ValueError(f"burstiness must be {NARROWEST} or more where gaps are weibull")
        if self.share is not None and self.copies == 1:
            raise ValueError("share needs copies to be shared among")
        if self.stop is not None and self.stop - self.start < TICK:
            raise ValueError("stop must come a microsecond or more after start")
        if self.max_tokens is not None and self.max_tokens < self.output.largest:
            raise ValueError(f"max_tokens = {self.max_tokens} is less than output.most = {self.output.largest}")
        return self

    @property
    def names(self) -> list[str]:
        """Who this stands for."""
        return [self.name] if self.copies == 1 else [f"{self.name}-{number + 1}" for number in range(self.copies)]


class Spec(Section):
    """The whole file. `duration` is the time over which the requests arrive."""

    seed: int = 0
    duration: Stretch
    block_size: int = Field(default=16, ge=1)
    prefixes: list[Prefix] = Field(default=[])
    users: list[User] = Field(min_length=1)

    @model_validator(mode="after")
    def consistent(self) -> Spec:
        names = [prefix.name for prefix in self.prefixes]
        for prefix in self.prefixes:
            if prefix.tokens % self.block_size:
                raise ValueError(
                    f"prefix {prefix.name!r}: {prefix.tokens} tokens are not whole blocks of {self.block_size}"
                )
        for user in self.users:
            if user.prefix is not None and user.prefix not in names:
                raise ValueError(
                    f"user {user.name!r}: there is no prefix {user.prefix!r}: {nearest(user.prefix, names)}"
                )
            if user.start >= self.duration:
                raise ValueError(f"user {user.name!r}: starts when the duration is over")
        for kind, given in (("prefixes", names), ("users", [name for user in self.users for name in user.names])):
            if len(set(given)) < len(given):
                raise ValueError(f"two {kind} have the same name")
        return self


def read_spec(path: Path) -> Spec:
    """The specification, checked; every fault is named at once."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ExperimentError(f"{path}: cannot be read ({getattr(fault, 'strerror', None) or fault})") from fault
    try:
        return checked_spec(tomllib.loads(text), str(path))
    except tomllib.TOMLDecodeError as fault:
        raise ExperimentError(f"{path}: is not TOML ({fault})") from fault


def checked_spec(document: dict[str, Any], place: str) -> Spec:
    """A specification from its tables; `place` says where they stand, for the sentence when something is wrong."""
    try:
        return Spec.model_validate_json(json.dumps(document, default=str))
    except ValidationError as faults:
        found = "; ".join(spec_fault(fault, Spec) for fault in faults.errors())
        raise ExperimentError(f"{place}: {found}") from faults

"""The file that a generated trace is declared in: its words, and the sentences where one of them is wrong.

It draws nothing; what the words come to is in `replay.traces.generate`.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from replay.errors import ExperimentError
from replay.registry import nearest
from replay.traces.durations import nanoseconds

TICK = 1_000  # arrivals are drawn to the microsecond: finer digits could differ between two machines' logarithms


def _nanoseconds(value: object) -> int:
    try:
        return nanoseconds(value, "")
    except ExperimentError as fault:
        raise ValueError(str(fault).removeprefix(": ")) from fault


Duration = Annotated[int, BeforeValidator(_nanoseconds)]
"""As people type it, and nanoseconds inside."""
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """A table of the file: no key but the known ones, no value but of the stated type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Lengths(Section):
    """Counts (of tokens, of turns), in one of four forms.

    `median`: lognormal, `spread` the standard deviation of the logarithm, kept between `least` and `most`. `uniform`:
    from the first to the second, both included. `choices`: one of these, each as likely. `fixed`: always the same.
    """

    median: float | None = Field(default=None, gt=0)
    spread: float = Field(default=0.0, ge=0)
    least: int = Field(default=1, ge=1)
    most: int | None = Field(default=None, ge=1)
    uniform: tuple[Count, Count] | None = None
    choices: list[Count] | None = Field(default=None, min_length=1)
    fixed: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def consistent(self) -> Lengths:
        forms = [name for name in ("median", "uniform", "choices", "fixed") if getattr(self, name) is not None]
        if len(forms) != 1:
            raise ValueError("give one of median (with most), uniform, choices and fixed")
        strangers = self.model_fields_set & {"spread", "least", "most"}
        if self.median is None and strangers:
            raise ValueError(f"{min(strangers)} goes with median, not with {forms[0]}")
        if self.median is not None and self.most is None:
            raise ValueError("median needs most, the largest count there may be")
        if self.most is not None and self.least > self.most:
            raise ValueError(f"least = {self.least} is more than most = {self.most}")
        if self.uniform is not None and self.uniform[0] > self.uniform[1]:
            raise ValueError(f"uniform = {list(self.uniform)}: the first is more than the second")
        return self

    @property
    def largest(self) -> int:
        """No count is larger."""
        counts: list[int] = [*(self.uniform or ()), *(self.choices or ())]
        return max(counts + [count for count in (self.most, self.fixed) if count is not None])


class Prefix(Section):
    """A shared beginning of prompts, such as a system prompt; whole blocks of `block_size` tokens.

    With `copies`, so many different ones of that length: each request that begins with it has one of them.
    """

    name: str
    tokens: int = Field(ge=1)
    copies: int = Field(default=1, ge=1)


class Phase(Section):
    """A stretch of a user's time: so many requests a second, rising or falling evenly to `rate_at_end` if given."""

    rate: float = Field(ge=0)
    rate_at_end: float | None = Field(default=None, ge=0)
    lasts: Duration | None = None


class Sessions(Section):
    """Conversations or programs: a request comes `think_ms` after the one before it in its session was answered."""

    turns: Lengths
    think_ms: float = Field(default=0.0, ge=0)


class User(Section):
    """One user: how many requests (or how many a second), how bursty, how long, how urgent.

    `burstiness` is the coefficient of variation of the gaps, which are gamma-distributed: 1 is Poisson. `phases` follow
    each other: one that does not say how long it `lasts` goes on to the end, and where all say it, they begin again.
    `start` and `stop` bound the time in which the user is there at all. `prompt` is what comes after the prefix, which
    a share `prefix_share` of the requests have. With `sessions`, it is sessions that begin at the times drawn. With
    `copies`, there are so many users like this one, named `name-1`, `name-2` and so on.
    """

    name: str
    copies: int = Field(default=1, ge=1)
    count: int | None = Field(default=None, ge=1)
    rate: float | None = Field(default=None, gt=0)
    phases: list[Phase] | None = Field(default=None, min_length=1)
    start: Duration = 0
    stop: Duration | None = None
    burstiness: float = Field(default=1.0, gt=0, le=10)
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
            if phase.lasts is not None and phase.lasts < TICK:
                raise ValueError(f"phases.{place}: lasts must be a microsecond or more")
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
    duration: Duration
    block_size: int = Field(default=16, ge=1)
    prefixes: list[Prefix] = []
    users: list[User] = Field(min_length=1)

    @model_validator(mode="after")
    def consistent(self) -> Spec:
        if self.duration < TICK:
            raise ValueError("duration must be a microsecond or more")
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


TABLES: dict[object, type[Section]] = {
    **{"users": User, "prefixes": Prefix, "phases": Phase, "sessions": Sessions},
    **dict.fromkeys(("prompt", "output", "turns"), Lengths),
}


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
        raise ExperimentError(f"{place}: " + "; ".join(spec_fault(fault) for fault in faults.errors())) from faults


def spec_fault(fault: Any) -> str:
    """One of pydantic's faults in our words: the path of the key, and the nearest valid name for an unknown one."""
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] != "extra_forbidden":
        return f"{place}: {fault['msg'].removeprefix('Value error, ')}" if place else str(fault["ctx"]["error"])
    table: type[Section] = Spec
    for part in fault["loc"][:-1]:
        table = TABLES.get(part, table)
    return f"{place}: there is no such key: {nearest(fault['loc'][-1], table.model_fields)}"

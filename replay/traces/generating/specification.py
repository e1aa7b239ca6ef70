"""The file that a generated trace is declared in: its users, and the sentences where a word is wrong.

It draws nothing; what the words come to is in the modules beside it, each of which has the tables that it understands.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from replay.errors import ExperimentError
from replay.registry import nearest
from replay.traces.generating.classes import ServiceClass, Urgency
from replay.traces.generating.gaps import NARROWEST, FamilyName
from replay.traces.generating.lengths import Lengths
from replay.traces.generating.patterns import Common, Patterns
from replay.traces.generating.prefixes import Prefix, check_tree
from replay.traces.generating.rates import Phase
from replay.traces.generating.samples import Pairs, Traces
from replay.traces.generating.sections import MOST_COPIES, TICK, Duration, Stretch, spec_faults
from replay.traces.generating.sessions import ClosedLoop, Sessions
from replay.traces.generating.zipf import Share

OPEN_LOOP = {"stop", "burstiness", "gaps", "stationary", "share", "sessions", *Patterns.model_fields}


class User(Urgency, Patterns):
    """One user: how many requests (or how many a second), how bursty, how long, how urgent.

    `burstiness` is the coefficient of variation of the gaps, which are gamma- or Weibull-distributed: 1 is Poisson.
    `phases` follow each other: one that does not say how long it `lasts` goes on to the end, and where all say it, they
    begin again. The rate is multiplied by `diurnal`, `spikes` and `on_off`. A `stationary` user was there before.
    `start` and `stop` bound the time in which the user is there at all. `prompt` is what comes after the prefix, which
    a share `prefix_share` of the requests have; `lengths` gives both it and `output`. With `sessions`, it is sessions
    that begin at the times drawn; with a `closed_loop`, all arrivals follow from answers. With `copies`, there are so
    many users like this one, named `name-1`, `name-2` and so on; with a `share` among them, what is declared is for all
    of them together. Each request, or session, is of one of the `classes`. What is `nobody`'s has no user in the trace.
    """

    name: str
    nobody: bool = False
    copies: int = Field(default=1, ge=1, le=MOST_COPIES)
    share: Share | None = None
    count: int | None = Field(default=None, ge=1)
    rate: float | None = Field(default=None, gt=0)
    phases: list[Phase] | None = Field(default=None, min_length=1)
    closed_loop: ClosedLoop | None = None
    start: Duration = 0
    stop: Duration | None = None
    burstiness: float = Field(default=1.0, gt=0, le=10)
    gaps: FamilyName = "gamma"
    stationary: bool = False
    prompt: Lengths | None = None
    output: Lengths | None = None
    lengths: Pairs | None = None
    classes: list[ServiceClass] = Field(default=[])
    prefix: str | None = None
    prefix_share: float = Field(default=1.0, ge=0, le=1)
    sessions: Sessions | None = None

    @model_validator(mode="after")
    def consistent(self) -> User:
        if sum(given is not None for given in (self.count, self.rate, self.phases, self.closed_loop)) != 1:
            raise ValueError(
                "give either count (requests in all) or rate (requests per second), or phases, or closed_loop"
            )
        if self.closed_loop is not None and (strangers := self.model_fields_set & OPEN_LOOP):
            raise ValueError(f"{min(strangers)} does not go with closed_loop, whose arrivals follow from answers")
        self._check_gaps()
        if self.share is not None and self.copies == 1:
            raise ValueError("share needs copies to be shared among")
        if self.stop is not None and self.stop - self.start < TICK:
            raise ValueError("stop must come a microsecond or more after start")
        self._check_lengths()
        return self

    def _check_gaps(self) -> None:
        if self.stationary and self.count is not None:
            raise ValueError("stationary does not go with count, whose gaps fill the time from start to stop")
        phases = self.phases or []
        if (counted := [phase.count is not None for phase in phases]) and any(counted):
            if not all(counted):
                raise ValueError("phases have either a rate or a count, all of them the same")
            if self.share is not None or self.stationary or self.patterns:
                raise ValueError("phases with a count do not go with share, stationary, diurnal, spikes and on_off")
        for place, phase in enumerate(phases):
            if phase.lasts is None and place < len(phases) - 1:
                raise ValueError(f"phases.{place}: only the last phase may do without lasts")
            if (phase.gaps or self.gaps) == "weibull" and (phase.burstiness or self.burstiness) < NARROWEST:
                raise ValueError(f"phases.{place}: burstiness must be {NARROWEST} or more where gaps are weibull")
        if self.gaps == "weibull" and self.burstiness < NARROWEST:
            raise ValueError(f"burstiness must be {NARROWEST} or more where gaps are weibull")

    def _check_lengths(self) -> None:
        for number, kind in enumerate(self.kinds):
            place = f"classes.{number}: " if self.classes else ""
            given = [kind.prompt is not None, kind.output is not None]
            if any(given) != all(given) or any(given) == (kind.lengths is not None):
                raise ValueError(f"{place}give prompt and output, or lengths, which has both")
            largest = kind.largest[1]
            if kind.max_tokens is not None and kind.max_tokens < largest:
                raise ValueError(f"{place}max_tokens = {kind.max_tokens} is less than output.most = {largest}")

    @property
    def kinds(self) -> list[User]:
        """The user as each class has it; the user alone where there are no classes."""
        return [self.model_copy(update=each.own) for each in self.classes] or [self]

    @property
    def largest(self) -> tuple[float, float]:
        """No prompt, without its prefix, and no output is larger."""
        if self.lengths is not None:
            prompts, outputs = zip(*self.lengths.sample.values, strict=True)
            return max(prompts), max(outputs)
        assert self.prompt is not None, "a user has lengths, or both of these"
        assert self.output is not None, "a user has lengths, or both of these"
        return self.prompt.largest, self.output.largest

    @property
    def conversation(self) -> Sessions | None:
        """How the requests wait for one another, if they do."""
        return self.sessions or self.closed_loop

    @property
    def names(self) -> list[str]:
        """Who this stands for."""
        return [self.name] if self.copies == 1 else [f"{self.name}-{number + 1}" for number in range(self.copies)]


class Spec(Common):
    """The whole file. `duration` is the time over which requests arrive; `diurnal` and `spikes` are every user's."""

    seed: int = 0
    duration: Stretch
    block_size: int = Field(default=16, ge=1)
    prefixes: list[Prefix] = Field(default=[])
    users: list[User] = Field(min_length=1)

    @model_validator(mode="after")
    def consistent(self) -> Spec:
        check_tree(self.prefixes, self.block_size)
        names = [prefix.name for prefix in self.prefixes]
        for user in self.users:
            if self.patterns and user.phases and user.phases[0].count is not None:
                raise ValueError(f"user {user.name!r}: phases with a count do not go with diurnal and spikes")
            if user.start >= self.duration:
                raise ValueError(f"user {user.name!r}: starts when the duration is over")
            for kind in user.kinds:
                self._check_kind(kind, names)
        given = [name for user in self.users for name in user.names]
        if len(set(given)) < len(given):
            raise ValueError("two users have the same name")
        return self

    def _check_kind(self, user: User, names: Sequence[str]) -> None:
        if user.prefix is not None and user.prefix not in names:
            raise ValueError(f"user {user.name!r}: there is no prefix {user.prefix!r}: {nearest(user.prefix, names)}")
        if (talk := user.conversation) is None or talk.context is None:
            return
        prompt, output = user.largest
        first = self.prefix_tokens(user.prefix) + (talk.first.largest if talk.first else prompt) + output
        if talk.context < first:
            raise ValueError(f"user {user.name!r}: context = {talk.context} is less than a first turn may be, {first}")

    def prefix_tokens(self, name: str | None) -> int:
        """The tokens of a prefix and of all above it; 0 of none."""
        tokens, prefixes = 0, {prefix.name: prefix for prefix in self.prefixes}
        while name is not None:
            tokens, name = tokens + prefixes[name].tokens, prefixes[name].parent
        return tokens


def read_spec(path: Path, traces: Traces | None = None) -> Spec:
    """The specification, checked; every fault is named at once. `traces` are those it draws from, by its own folder."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ExperimentError(f"{path}: cannot be read ({getattr(fault, 'strerror', None) or fault})") from fault
    try:
        return checked_spec(tomllib.loads(text), str(path), traces or Traces(path.parent))
    except tomllib.TOMLDecodeError as fault:
        raise ExperimentError(f"{path}: is not TOML ({fault})") from fault


def checked_spec(document: dict[str, Any], place: str, traces: Traces | None = None) -> Spec:
    """A specification from its tables; `place` says where they stand, for the sentence when something is wrong."""
    try:
        return Spec.model_validate_json(json.dumps(document, default=str), context=traces or Traces(Path()))
    except ValidationError as faults:
        raise ExperimentError(f"{place}: {spec_faults(faults.errors(), Spec)}") from faults

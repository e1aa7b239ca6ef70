"""Generated traces: users with appetites, declared in a small TOML file, made into the same trace every time.

It measures nothing and copies nobody's traffic; a trace made here says in its history that it is generated. Draws are
from Python's own generator, a stream for each user and purpose, so that a change to one user, or to the rate, leaves
every other number as it was.
"""

from __future__ import annotations

import json
import math
import random
import tomllib
from collections.abc import Iterator
from itertools import accumulate, count
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from replay.errors import ExperimentError
from replay.registry import nearest
from replay.traces.canonical import Source, canonical_trace
from replay.traces.durations import nanoseconds
from replay.traces.reading import sha256_of
from replay.traces.table import Trace

TICK = 1_000  # arrivals are drawn to the microsecond: finer digits could differ between two machines' logarithms


class Section(BaseModel):
    """A table of the file: no key but the known ones, no value but of the stated type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Lengths(Section):
    """Token counts: lognormal with this median, `spread` the standard deviation of their logarithm, kept in bounds."""

    median: float = Field(gt=0)
    spread: float = Field(default=0.0, ge=0)
    least: int = Field(default=1, ge=1)
    most: int = Field(ge=1)

    @model_validator(mode="after")
    def in_order(self) -> Lengths:
        if self.least > self.most:
            raise ValueError(f"least = {self.least} is more than most = {self.most}")
        return self

    def draw(self, stream: random.Random) -> int:
        """One count."""
        return min(max(round(self.median * math.exp(self.spread * stream.gauss(0, 1))), self.least), self.most)


class Prefix(Section):
    """A shared beginning of prompts, such as a system prompt; whole blocks of `block_size` tokens."""

    name: str
    tokens: int = Field(ge=1)


class User(Section):
    """One user: how many requests (or how many a second), how bursty, how long, how urgent.

    `burstiness` is the coefficient of variation of the gaps, which are gamma-distributed: 1 is Poisson. `prompt` is
    what comes after the prefix, which a share `prefix_share` of the requests have.
    """

    name: str
    count: int | None = Field(default=None, ge=1)
    rate: float | None = Field(default=None, gt=0)
    burstiness: float = Field(default=1.0, gt=0, le=10)
    prompt: Lengths
    output: Lengths
    max_tokens: int | None = Field(default=None, ge=1)
    priority: int | None = None
    deadline_ms: float | None = Field(default=None, gt=0)
    slo: str | None = None
    prefix: str | None = None
    prefix_share: float = Field(default=1.0, ge=0, le=1)

    @model_validator(mode="after")
    def consistent(self) -> User:
        if (self.count is None) == (self.rate is None):
            raise ValueError("give either count (requests in all) or rate (requests per second)")
        if self.max_tokens is not None and self.max_tokens < self.output.most:
            raise ValueError(f"max_tokens = {self.max_tokens} is less than output.most = {self.output.most}")
        return self


class Spec(Section):
    """The whole file. `duration` is the time over which the requests arrive."""

    seed: int = 0
    duration: str | float
    block_size: int = Field(default=16, ge=1)
    prefixes: list[Prefix] = []
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
        for kind, given in (("prefixes", names), ("users", [user.name for user in self.users])):
            if len(set(given)) < len(given):
                raise ValueError(f"two {kind} have the same name")
        return self


def generate_trace(path: str | Path) -> Trace:
    """The trace that a specification file describes; raises `ExperimentError` where the file does not describe one."""
    path = Path(path)
    spec = read_spec(path)
    duration = nanoseconds(spec.duration, f"{path}: duration")
    if duration < TICK:
        raise ExperimentError(f"{path}: duration must be a microsecond or more")
    rows = [row for user in spec.users for row in user_rows(spec, user, duration)]
    rows.sort(key=itemgetter("arrival_ns"))  # stable: ties stay in order of user
    if not rows:
        raise ExperimentError(f"{path}: no user has a request within the duration; raise a rate or the duration")
    source = Source(path, pl.DataFrame(rows, infer_schema_length=None), block_size=spec.block_size)
    trace = canonical_trace(path.stem, path, [source], sha256_of([path]))
    trace.history.append(
        f"generated from {path.name} (sha256 {trace.sha256[:16]}), seed {spec.seed}: not measured traffic"
    )
    return trace


def read_spec(path: Path) -> Spec:
    """The specification, checked; every fault is named at once."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ExperimentError(f"{path}: cannot be read ({getattr(fault, 'strerror', None) or fault})") from fault
    try:
        return Spec.model_validate_json(json.dumps(tomllib.loads(text), default=str))
    except tomllib.TOMLDecodeError as fault:
        raise ExperimentError(f"{path}: is not TOML ({fault})") from fault
    except ValidationError as faults:
        raise ExperimentError(f"{path}: " + "; ".join(spec_fault(fault) for fault in faults.errors())) from faults


def spec_fault(fault: Any) -> str:
    """One of pydantic's faults in our words: the path of the key, and the nearest valid name for an unknown one."""
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] != "extra_forbidden":
        return f"{place}: {fault['msg'].removeprefix('Value error, ')}" if place else str(fault["ctx"]["error"])
    sections: dict[object, type[Section]] = {"users": User, "prefixes": Prefix, "prompt": Lengths, "output": Lengths}
    table: type[Section] = Spec
    for part in fault["loc"][:-1]:
        table = sections.get(part, table)
    return f"{place}: there is no such key: {nearest(fault['loc'][-1], table.model_fields)}"


def user_rows(spec: Spec, user: User, duration: int) -> Iterator[dict[str, object]]:
    """One user's requests, in order of arrival."""
    lengths = random.Random(f"{spec.seed}/{user.name}/lengths")
    shared = prefix_hashes(spec)[user.prefix] if user.prefix is not None else []
    for number, arrival in enumerate(arrivals(spec, user, duration)):
        own, output = user.prompt.draw(lengths), user.output.draw(lengths)
        hashes = shared if lengths.random() < user.prefix_share else []
        yield {
            "arrival_ns": arrival,
            "request_id": f"{user.name}-{number}",
            "prompt_tokens": len(hashes) * spec.block_size + own,
            "output_tokens": output,
            "user": user.name,
            "priority": user.priority,
            "deadline_ms": user.deadline_ms,
            "slo": user.slo,
            "max_tokens": user.max_tokens,
            "prefix_hashes": hashes or None,
        }


def prefix_hashes(spec: Spec) -> dict[str, list[int]]:
    """The hashes of each prefix's blocks, counted on from prefix to prefix, so that no two share one."""
    counter = count()
    return {prefix.name: [next(counter) for _ in range(prefix.tokens // spec.block_size)] for prefix in spec.prefixes}


def arrivals(spec: Spec, user: User, duration: int) -> Iterator[int]:
    """Nanoseconds at which the user's requests arrive, by gamma-distributed gaps.

    With a `count`, the gaps (one more than requests) are stretched to fill the duration, so a shorter duration is the
    same pattern, faster. With a `rate`, they follow each other until the duration is over.
    """
    stream = random.Random(f"{spec.seed}/{user.name}/arrivals")
    shape = 1 / user.burstiness**2
    if user.count is not None:
        *times, end = accumulate(stream.gammavariate(shape, 1.0) for _ in range(user.count + 1))
        yield from (round(time / end * duration / TICK) * TICK for time in times)
        return
    assert user.rate is not None
    mean = 1e9 / user.rate
    time = stream.gammavariate(shape, mean / shape)
    while time < duration:
        yield round(time / TICK) * TICK
        time += stream.gammavariate(shape, mean / shape)

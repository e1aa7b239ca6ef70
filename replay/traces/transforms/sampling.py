"""Fewer requests, chosen by chance that goes by names: single ones, or those of whole users or whole sessions."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from replay.errors import ExperimentError, TraceError
from replay.traces.drawing import draw
from replay.traces.table import Trace
from replay.traces.transforms.arguments import as_number, one_of, settings, whole
from replay.traces.transforms.declaring import (
    Transform,
    from_zero,
    noted,
    settled,
    transforms,
    with_cut_sessions,
)


@dataclass(frozen=True, slots=True)
class Part:
    """How many to take: a `count`, or a `share` of all; and the seed of the draw."""

    name: str
    count: int | None
    share: float | None
    seed: int

    def of(self, total: int) -> int:
        """So many of `total`, at least one."""
        if self.share is not None:
            return max(1, round(self.share * total))
        return min(self.count or total, total)


def part(name: str, argument: object) -> Part:
    """The argument of a sample: 0.1, 50, or a table with one of them and a seed."""
    example = "{ share = 0.1, seed = 7 }"
    given = settings(name, argument, ("share", "count", "seed"), example) if isinstance(argument, dict) else None
    if given is None:
        is_count = isinstance(argument, int) and not isinstance(argument, bool)
        given = {"count" if is_count else "share": argument}
        if not is_count and (share := as_number(argument)) is not None and not 0 < share < 1:
            raise ExperimentError(f"{name}: {argument!r} is neither a share between 0 and 1 nor a whole number")
        if not is_count and as_number(argument) is None:
            raise ExperimentError(f"{name}: {argument!r} is neither a share, a count, nor a table such as {example}")
    seed = whole(f"{name}: seed", given.get("seed", 0), 0)
    if one_of(name, given, ("share", "count")) == "count":
        return Part(name, whole(f"{name}: count", given["count"]), None, seed)
    share = as_number(given["share"])
    if share is None or not 0 < share < 1:
        raise ExperimentError(f"{name}: share: {given['share']!r} is not a share between 0 and 1")
    return Part(name, None, share, seed)


@transforms.register("sample")
def sample(argument: object) -> Transform:
    """Keep some requests, at random, so many or a share: { sample = 0.1 }"""
    wanted = part("sample", argument)

    def thin(trace: Trace) -> Trace:
        kept = nearest_draws(trace.rows, "request_id", wanted.of(rows(trace.rows)), wanted)
        return with_cut_sessions(trace, from_zero(settled(trace.with_rows(trace.rows.filter(kept)))))

    return thin


@transforms.register("sample_users")
def sample_users(argument: object) -> Transform:
    """Keep all requests of some users, so many or a share of them: { sample_users = 0.1 }"""
    wanted = part("sample_users", argument)
    return lambda trace: with_cut_sessions(trace, of_groups(trace, "user", wanted))


@transforms.register("sample_sessions")
def sample_sessions(argument: object) -> Transform:
    """Keep some sessions, each whole, so many or a share of them: { sample_sessions = 0.1 }"""
    wanted = part("sample_sessions", argument)
    return lambda trace: of_groups(trace, "session", wanted)


def of_groups(trace: Trace, column: str, wanted: Part) -> Trace:
    """The requests of some users or sessions, and the same share of the requests that belong to none."""
    grouped, loose = trace.rows.filter(pl.col(column).is_not_null()), trace.rows.filter(pl.col(column).is_null())
    names = grouped.select(pl.col(column).unique())
    total, alone = rows(names), rows(loose)
    if not total:
        raise TraceError(f"{trace.path}: {wanted.name}: no request has a {column}; `sample` takes single requests")
    taken = wanted.of(total)
    kept = nearest_draws(names, column, taken, wanted)
    told = [f"{taken:,} of {total:,} {column}s"]
    if alone:
        left = round(alone * taken / total)
        kept_alone = nearest_draws(loose, "request_id", left, wanted) if left else pl.lit(value=False)
        kept = pl.when(pl.col(column).is_null()).then(kept_alone).otherwise(kept)
        told.append(f"{left:,} of {alone:,} requests without a {column}, the same share")
    return noted(from_zero(settled(trace.with_rows(trace.rows.filter(kept)))), *told)


def nearest_draws(names: pl.LazyFrame, column: str, count: int, wanted: Part) -> pl.Expr:
    """Whether a row's name is among the `count` with the lowest draws of all those `names`."""
    value = draw(pl.col(column), wanted.seed, wanted.name)
    last: int = names.select(value.bottom_k(count).max()).collect(engine="streaming").item()
    return value <= pl.lit(last, pl.UInt64)


def rows(of: pl.LazyFrame) -> int:
    """How many there are."""
    found: int = of.select(pl.len()).collect(engine="streaming").item()
    return found

"""Users that a trace does not have: one for each session or class, or so many made-up ones, of which some ask more."""

from __future__ import annotations

from typing import Any

import polars as pl

from replay.errors import ExperimentError, TraceError
from replay.traces.drawing import drawn
from replay.traces.table import Trace
from replay.traces.transforms.arguments import as_number, settings, whole
from replay.traces.transforms.declaring import Transform, noted, settled, transforms
from replay.traces.wording import counted

COLUMNS = ("session", "slo", "priority")
EXAMPLE = "{ random = 20, zipf = 1.1, seed = 7 }"
MOST = 1_000_000


@transforms.register("derive_user")
def derive_user(argument: object) -> Transform:
    """A user for each session, slo or priority, or drawn by chance: { derive_user = "session" }"""
    if isinstance(argument, str) and argument in COLUMNS:
        return by_column(argument)
    if not isinstance(argument, dict):
        named = ", ".join(f'"{column}"' for column in COLUMNS)
        raise ExperimentError(f"derive_user: {argument!r} is none of {named}, nor a table such as {EXAMPLE}")
    return at_random(settings("derive_user", argument, ("random", "zipf", "seed"), EXAMPLE))


def by_column(column: str) -> Transform:
    """The user is what the column says; nobody's where it says nothing."""

    def derive(trace: Trace) -> Trace:
        if not trace.values(given=pl.col(column).is_not_null().any())["given"]:
            raise TraceError(f"{trace.path}: derive_user: no request has a {column}; try {{ random = 20 }}")
        return with_users(trace, pl.col(column).cast(pl.String))

    return derive


def at_random(given: dict[str, Any]) -> Transform:
    """`user-1` to `user-N`: the k-th has a share of the requests like 1 / k ** zipf. A session has one user."""
    if "random" not in given:
        raise ExperimentError(f"derive_user: say how many users there are, as in {EXAMPLE}")
    users = whole("derive_user: random", given["random"])
    if users > MOST:
        raise ExperimentError(f"derive_user: random: {users} users are more than {MOST:,}")
    zipf = as_number(given.get("zipf", 0))
    if zipf is None or not 0 <= zipf <= 100:
        raise ExperimentError(f"derive_user: zipf: {given['zipf']!r} is not a number from 0 (all alike) to 100")
    seed = whole("derive_user: seed", given.get("seed", 0), 0)
    weights = [rank**-zipf for rank in range(1, users + 1)]
    place = drawn(pl.coalesce("session", "request_id"), seed, "derive_user", weights)
    return lambda trace: with_users(trace, "user-" + (place + 1).cast(pl.String))


def with_users(trace: Trace, value: pl.Expr) -> Trace:
    """The trace with these users, and a note on how many there are."""
    user = pl.col("user")
    replaced = trace.values(own=user.is_not_null().sum())["own"]
    changed = settled(trace.with_rows(trace.rows.with_columns(value.alias("user"))))
    counts = changed.rows.filter(user.is_not_null()).group_by("user").len()
    found = counts.select(pl.len().alias("users"), pl.col("len").max().alias("most"))
    users, most = found.collect(engine="streaming").row(0)
    notes = [f"{counted(users, 'derived user')}, the busiest with {counted(most, 'request')}"]
    nobody = changed.values(rows=user.is_null().sum())["rows"]
    if nobody:
        notes.append(f"{counted(nobody, 'request')} of nobody")
    if replaced:
        notes.append(f"{counted(replaced, 'request')} had a user, who is replaced")
    return noted(changed, *notes)

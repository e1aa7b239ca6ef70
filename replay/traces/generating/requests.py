"""The requests of a specification: each user's arrivals, with lengths, prefixes and what else a request says of itself.

Draws are from Python's own generator, a stream for each user and purpose, so that a change to one user, or to the rate,
leaves every other number as it was.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping

import polars as pl

from replay.traces.generating.arrivals import arrivals
from replay.traces.generating.population import Member, members
from replay.traces.generating.prefixes import Hashes, prefix_hashes
from replay.traces.generating.specification import Spec, User
from replay.traces.table import SCHEMA

COLUMNS = pl.Schema({"arrival_ns": pl.Int64(), **{name: SCHEMA[name] for name in SCHEMA if name != "arrival"}})


def requests(spec: Spec) -> pl.DataFrame:
    """All requests in order of arrival; those of one instant in order of user."""
    prefixes = prefix_hashes(spec)
    tables = [user_requests(spec, user, member, prefixes) for user in spec.users for member in members(user)]
    return pl.concat(tables).sort("arrival_ns", maintain_order=True)


def user_requests(spec: Spec, user: User, member: Member, prefixes: Mapping[str, list[Hashes]]) -> pl.DataFrame:
    """The requests of one user; `prefixes` has the hashes of each one's blocks.

    All turns of a session arrive with its first: whoever replays them waits for the answer to the one before.
    """
    name = member.name
    lengths, sessions = (random.Random(f"{spec.seed}/{name}/{purpose}") for purpose in ("lengths", "sessions"))
    prompt, output = user.prompt.counts_from(lengths), user.output.counts_from(lengths)
    turns = user.sessions.turns.counts_from(sessions) if user.sessions else lambda: 1
    shared = prefixes[user.prefix] if user.prefix is not None else [[]]
    columns: dict[str, list[object]] = defaultdict(list)
    for number, arrival in enumerate(arrivals(spec, user, member)):
        for turn in range(turns()):
            own, answer = prompt(), output()
            carries = lengths.random() < user.prefix_share
            one_of = lengths.randrange(len(shared)) if len(shared) > 1 else 0
            hashes = shared[one_of] if carries else []
            columns["arrival_ns"].append(arrival)
            columns["prompt_tokens"].append(len(hashes) * spec.block_size + own)
            columns["output_tokens"].append(answer)
            columns["number"].append(number)
            columns["turn"].append(turn)
            columns["prefix_hashes"].append(hashes or None)
    if user.sessions:
        think = user.sessions.think_ms.drawn_from(random.Random(f"{spec.seed}/{name}/think"))
        always = user.sessions.think_ms.fixed is not None
        columns["think_time_ms"] = [think() if turn or always else None for turn in columns["turn"]]
    return labelled(columns, user, name)


def labelled(columns: Mapping[str, list[object]], user: User, name: str) -> pl.DataFrame:
    """The drawn columns with names for requests and sessions, and with what all requests of the user have in common."""
    drawn = pl.DataFrame(
        {"number": [], **columns}, schema_overrides={"number": pl.Int64, **dict(COLUMNS)}, strict=False
    )
    session = pl.format("{}-{}", pl.lit(name), "number")
    constant = {
        "user": name,
        "priority": user.priority,
        "deadline_ms": user.deadline_ms,
        "slo": user.slo,
        "max_tokens": user.max_tokens,
    }
    if user.sessions:
        named = drawn.with_columns(session=session, request_id=pl.format("{}-{}", session, "turn"))
    else:
        named = drawn.drop("turn", strict=False).with_columns(request_id=session)
    named = named.with_columns(pl.lit(value, COLUMNS[column]).alias(column) for column, value in constant.items())
    absent = [pl.lit(None, dtype).alias(column) for column, dtype in COLUMNS.items() if column not in named.columns]
    return named.with_columns(absent).select(COLUMNS.names())

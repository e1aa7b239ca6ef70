"""The requests of a specification: each user's arrivals, with lengths, prefixes and what else a request says of itself.

Draws are from Python's own generator, a stream for each user and purpose, so that a change to one user, or to the rate,
leaves every other number as it was.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import polars as pl

from replay.traces.generating.arrivals import arrivals
from replay.traces.generating.classes import SAID, class_from
from replay.traces.generating.population import Member, members
from replay.traces.generating.prefixes import NO_PREFIX, Shared, joined, prefix_hashes, with_prefix
from replay.traces.generating.sessions import grown
from replay.traces.generating.specification import Spec, User
from replay.traces.table import SCHEMA
from replay.traces.wording import counted

COLUMNS = pl.Schema({"arrival_ns": pl.Int64(), **{name: SCHEMA[name] for name in SCHEMA if name != "arrival"}})
DRAWN = pl.Schema(
    {
        "arrival_ns": pl.Int64(),
        "user": pl.String(),
        "number": pl.Int64(),  # of the request, or session, among the user's
        "turn": pl.Int64(),
        "prompt_tokens": pl.Int64(),  # without a prefix
        "output_tokens": pl.Int64(),
        "copy": pl.Int64(),  # of the prefix; null: without it
        "class": pl.Int64(),  # its place among the user's
        "think_time_ms": pl.Float64(),
    }
)


def requests(spec: Spec) -> tuple[pl.DataFrame, list[str]]:
    """All requests in order of arrival, those of one instant in order of user; and what is to be said of them."""
    prefixes = prefix_hashes(spec.prefixes, spec.block_size)
    tables, notes = [], []
    for user in spec.users:
        shared = [NO_PREFIX if kind.prefix is None else prefixes[kind.prefix] for kind in user.kinds]
        prefix = joined(shared)
        rows = [row for member in members(user) for row in drawn(spec, user, member, shared)]
        table = pl.DataFrame(rows, schema=DRAWN, orient="row")
        if user.conversation is not None and user.conversation.grows:
            table, ended = grown(table, user.conversation, prefix, spec.block_size, spec.seed)
            notes += [f"user {user.name}: {counted(ended, 'session')} ended early, at the context"] * bool(ended)
        else:
            table = with_prefix(table, prefix, spec.block_size)
        tables.append(labelled(table, user))
    return pl.concat(tables).sort("arrival_ns", maintain_order=True), notes


def drawn(spec: Spec, user: User, member: Member, shared: Sequence[Shared]) -> Iterator[tuple[object, ...]]:
    """What differs between the requests of one user, a row of `DRAWN` each, in order of arrival.

    `shared` has the prefix of each kind of requests; their copies are counted on from kind to kind. All turns of a
    session arrive with its first: whoever replays them waits for the answer to the one before. The
    first turn has a time to think only where that is always the same.
    """

    def stream(purpose: str) -> random.Random:
        return random.Random(f"{spec.seed}/{member.name}/{purpose}")

    lengths, talk = stream("lengths"), user.conversation
    draws = [lengths_from(kind, lengths) for kind in user.kinds]
    copies = [prefix.drawn_from(lengths) for prefix in shared]
    begins = [0, *accumulate(len(prefix.copies) for prefix in shared)]
    of_class = class_from(user.classes, stream("classes"))
    first = talk.first.counts_from(lengths) if talk and talk.first else None
    turns = talk.turns.counts_from(stream("sessions")) if talk else lambda: 1
    think = talk.think_ms.times_from(stream("think")) if talk else lambda: None
    always = talk is not None and talk.think_ms.fixed is not None
    for number, arrival in enumerate(arrivals(spec, user, member)):
        place = of_class()
        for turn in range(turns()):
            prompt, output = draws[place]()
            if first is not None and turn == 0:
                prompt = first()
            carries, one_of = lengths.random() < user.prefix_share, begins[place] + copies[place]()
            thought = think() if turn or always else None
            yield arrival, member.name, number, turn, prompt, output, one_of if carries else None, place, thought


def lengths_from(user: User, stream: random.Random) -> Callable[[], tuple[int, int]]:
    """A function that draws a prompt, without its prefix, and an output."""
    if user.lengths is not None:
        return user.lengths.sample.drawn_from(stream)
    assert user.prompt is not None, "a user has lengths, or both of these"
    assert user.output is not None, "a user has lengths, or both of these"
    prompt, output = user.prompt.counts_from(stream), user.output.counts_from(stream)
    return lambda: (prompt(), output())


def labelled(table: pl.DataFrame, user: User) -> pl.DataFrame:
    """The columns of a trace: those drawn, names for requests and sessions, and what the user says of all requests."""
    one = pl.format("{}-{}", "user", "number")
    if user.conversation:
        table = table.with_columns(session=one, request_id=pl.format("{}-{}", one, "turn"))
    else:
        table = table.with_columns(request_id=one, turn=pl.lit(None, pl.Int64))
    table = table.with_columns(said(user, column) for column in SAID)
    if user.nobody:
        table = table.with_columns(user=pl.lit(None, pl.String))
    absent = [pl.lit(None, dtype).alias(column) for column, dtype in COLUMNS.items() if column not in table.columns]
    return table.with_columns(absent).select(COLUMNS.names())


def said(user: User, column: str) -> pl.Expr:
    """What the class of each request says, or the user where that says nothing."""
    always = getattr(user, column)
    if not user.classes:
        return pl.lit(always, COLUMNS[column]).alias(column)
    own = [getattr(each, column) for each in user.classes]
    values = pl.Series(column, [always if value is None else value for value in own], COLUMNS[column])
    return pl.lit(values).gather(pl.col("class")).alias(column)

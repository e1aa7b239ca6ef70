"""The turns of a trace's sessions, those of one session together and in order, a part of the sessions at a time.

It knows the canonical columns only, and takes little memory however many turns there are: 64 bits stand for the name of
a session.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from replay.traces.scratch import AT_ONCE, Scratch

FOLLOWS = (pl.col("session") == pl.col("session").shift()).fill_null(value=False)  # of turns in order: not the first


def turns(rows: pl.LazyFrame, *columns: str | pl.Expr, most: int = AT_ONCE) -> Iterator[pl.DataFrame]:
    """The turns of some sessions after those of others, about `most` at once; nothing where there are no sessions.

    Each has `session`, a number for its name, `turn`, `arrival` and the `columns` asked for, in order of session, turn,
    and place in the rows.
    """
    of_sessions = rows.filter(pl.col("session").is_not_null())
    count = of_sessions.select(pl.len()).collect(engine="streaming").item()
    if not count:
        return
    numbers = of_sessions.select(pl.col("session").hash(), "turn", "arrival", *columns)
    scratch = Scratch()  # which keeps the files for as long as the parts are asked for
    for part in scratch.parts(numbers, pl.col("session"), -(-count // most)):
        yield part.collect(engine="streaming").sort("session", "turn", maintain_order=True)

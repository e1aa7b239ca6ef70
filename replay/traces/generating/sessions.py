"""Requests that wait for one another: conversations, programs, clients in a closed loop; and prompts that grow in them.

A prompt that grows has hashes of its whole blocks: those after the shared prefix are its session's own. When a session
begins is not known here.
"""

from __future__ import annotations

import hashlib

import polars as pl
from pydantic import Field, model_validator

from replay.traces.generating.lengths import Lengths, Times
from replay.traces.generating.prefixes import Shared
from replay.traces.generating.sections import Duration, Section

FIRST, PLACES = 1 << 62, (1 << 62) - (1 << 40)  # of the hashes of sessions, which are far above those of prefixes


class Sessions(Section):
    """A request comes `think_ms` after the one before it in its session was answered.

    The first prompt may be as long as `first` says, where the later ones are as the user says. Where a session `grows`,
    a prompt holds what went before, prompts and answers; what is drawn is what is new in it. A session ends early where
    its next prompt and answer would be more than its `context`.
    """

    turns: Lengths
    think_ms: Times = Times(fixed=0.0)
    first: Lengths | None = None
    grows: bool = False
    context: int | None = Field(default=None, ge=2)

    @model_validator(mode="after")
    def growing(self) -> Sessions:
        if self.context is not None and not self.grows:
            raise ValueError("context goes with grows = true")
        return self


class ClosedLoop(Sessions):
    """So many `clients`, each a session of one user; they begin one after the other within a time to `ramp` up."""

    clients: int = Field(ge=1)
    ramp: Duration = 0


def grown(
    table: pl.DataFrame, sessions: Sessions, prefix: Shared, block_size: int, seed: int
) -> tuple[pl.DataFrame, int]:
    """The rows with prompts that hold what went before and hashes of their whole blocks; and how many of the sessions
    ended early.

    The first turn says whether a session has the prefix, and which copy of it.
    """
    session = ("user", "number")
    table = table.with_columns(pl.col("copy").first().over(session))
    blocks = prefix.blocks
    told = (pl.col("prompt_tokens") + pl.col("output_tokens")).cum_sum().over(session)
    table = table.with_columns(prompt_tokens=blocks * block_size + told - pl.col("output_tokens"))
    kept = table
    if sessions.context is not None:
        kept = table.filter(pl.col("prompt_tokens") + pl.col("output_tokens") <= sessions.context)
    lost = table.join(kept, on=[*session, "turn"], how="anti").unique(session).height
    known = kept.select(session).unique(maintain_order=True)
    firsts = [first_hash(f"{seed}/{user}/{number}") for user, number in known.iter_rows()]
    kept = kept.join(
        known.with_columns(pl.Series("first", firsts, pl.Int64)), on=session, how="left", maintain_order="left"
    )
    own = pl.int_ranges("first", pl.col("first") + pl.col("prompt_tokens") // block_size - blocks)
    hashes = pl.concat_list(prefix.hashes.fill_null([]), own)
    return kept.with_columns(pl.when(hashes.list.len() > 0).then(hashes).alias("prefix_hashes")), lost


def first_hash(session: str) -> int:
    """The hash of the first block that is a session's own; its others count on from there.

    It comes from the session's name, so that no other session moves it.
    """
    digest = hashlib.blake2b(session.encode(), digest_size=8).digest()
    return FIRST + int.from_bytes(digest, "little") % PLACES

"""Sessions of a group: turns, time to think, and whether each prompt holds what was said before.

Where a trace has no think times, the time between two turns' arrivals stands for them, answering included.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from replay.traces.fitting.kinds import Known
from replay.traces.fitting.lengths import two_digits

MOSTLY = 0.8  # of the pairs of turns: then prompts are said to grow


@dataclass(frozen=True, slots=True)
class Conversations:
    """Quantiles of turns, of milliseconds of thought, and of what is new in first prompts that grow; in tokens, how
    much prompts that grow may come to, with their answers."""

    turns: list[int]
    think_ms: list[int]
    grows: bool = False
    first: list[int] | None = None
    context: int | None = None


def with_turns(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with `before`, prompt and answer of the turn before in the session, and `thought` in ms, if known."""
    of_session = frame.filter(pl.col("sid").is_not_null()).sort("sid", "turn", "row", nulls_last=True)
    same = pl.col("sid") == pl.col("sid").shift()
    spoken = (pl.col("prompt_tokens") + pl.col("output_tokens")).shift()
    gap = pl.col("arrival").diff() / 1e6
    turns = of_session.select(
        "row",
        before=pl.when(same).then(spoken),
        thought=pl.when(same).then(pl.col("think_time_ms").fill_null(gap)),
    )
    return frame.join(turns, on="row", how="left", maintain_order="left")


def grow(frame: pl.DataFrame) -> bool:
    """Whether most prompts, of rows with `before`, are at least as long as all that was said before them."""
    grown = (frame["prompt_tokens"] >= frame["before"]).drop_nulls()
    return len(grown) > 0 and int(grown.sum()) >= MOSTLY * len(grown)


def conversations(frame: pl.DataFrame, known: Known) -> Conversations | None:
    """The sessions of these rows; None where there are none. A row without a session is one of a single turn."""
    if not frame["sid"].count():
        return None
    of_session = frame.filter(pl.col("sid").is_not_null()).group_by("sid").len()["len"].cast(pl.Int64)
    alone = pl.Series([1] * frame["sid"].null_count(), dtype=pl.Int64)
    turns = known.quantiles(of_session.extend(alone))
    thought = frame["thought"].drop_nulls()
    think = known.quantiles(thought.round()) if len(thought) else [0, 0]
    if not known.grown:
        return Conversations(turns, think)
    largest = two_digits(int(frame.select((pl.col("prompt_tokens") + pl.col("output_tokens")).max()).item()))
    return Conversations(turns, think, True, known.quantiles(frame.filter("first")["own"]), largest)

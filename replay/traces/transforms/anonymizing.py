"""A trace that can be shown to others: names and prompts out of it, times and lengths as they are.

It does not hide what times and lengths say by themselves: who knows when somebody asked may still find them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa

from replay.errors import ExperimentError
from replay.traces.durations import PATTERN
from replay.traces.table import Change, Trace
from replay.traces.transforms.arguments import settings
from replay.traces.transforms.declaring import Transform, noted, settled, transforms
from replay.traces.transforms.pacing import TIMES
from replay.traces.wording import counted

NAMED = {"user": "user", "session": "session", "slo": "class"}
CONTENT = ("prompt", "prompt_token_ids")
EXAMPLE = '{ keep = ["slo"] }'
PLACE = "__place"
LEFT_OUT = "left out to anonymize"


@transforms.register("anonymize")
def anonymize(argument: object) -> Transform:
    """Replace names by numbers, leave prompts, hashes' values and file names out: { anonymize = true }"""
    given = {} if argument is True else argument
    if argument is False:
        raise ExperimentError("anonymize: false does nothing; leave it out")
    keep = settings("anonymize", given, ("keep",), f"{EXAMPLE}, nor true").get("keep", [])
    if not isinstance(keep, list | tuple) or not set(keep) <= set(NAMED):
        raise ExperimentError(f"anonymize: keep: {keep!r} is not a list of {', '.join(NAMED)}")

    def hide(trace: Trace) -> Trace:
        notes = []
        for column in NAMED:
            if column not in keep:
                trace, count = numbered(trace, column)
                notes += [f"{counted(count, f'{column} name')} replaced"] * bool(count)
        rows = (
            trace.rows.drop("request_id")
            .with_row_index("request_id")
            .with_columns(pl.col("request_id").cast(pl.String))
        )
        content = trace.values(*(pl.col(column).is_not_null().sum() for column in CONTENT))
        notes += [f"{column} of {counted(n, 'request')} left out" for column, n in content.items() if n]
        rows = rows.with_columns(pl.lit(None, trace.rows.collect_schema()[column]).alias(column) for column in CONTENT)
        if trace.block_size is not None:
            rows, count = renumbered(rows)
            notes.append(f"{counted(count, 'hash', 'hashes')} renumbered")
        steps = [step(line) for line in trace.history]
        hidden = trace.with_rows(rows.select(trace.rows.collect_schema().names()))
        hidden = replace(hidden, history=steps, notes=[], changes=[nameless(change) for change in trace.changes])
        return noted(settled(hidden), *(notes or ["there were no names"]))

    return hide


def numbered(trace: Trace, column: str) -> tuple[Trace, int]:
    """The trace with the names of a column replaced by numbered ones, in order of first arrival; how many there are."""
    places = trace.rows.select(column).with_row_index(PLACE).filter(pl.col(column).is_not_null())
    first = places.group_by(column).agg(pl.col(PLACE).min()).sort(PLACE).collect(engine="streaming")
    if not first.height:
        return trace, 0
    number = pl.int_range(1, first.height + 1).cast(pl.String)
    names = first.select(column, (f"{NAMED[column]}-" + number).alias(PLACE)).lazy()
    rows = trace.rows.join(names, on=column, how="left", maintain_order="left")
    rows = rows.with_columns(pl.col(PLACE).alias(column)).drop(PLACE)
    return trace.with_rows(rows), first.height


def renumbered(rows: pl.LazyFrame) -> tuple[pl.LazyFrame, int]:
    """The rows with their hashes counted from 0 in order of first use, and how many different ones there are."""
    values = rows.select(pl.col("prefix_hashes").explode()).filter(pl.col("prefix_hashes").is_not_null())
    first = values.with_row_index(PLACE).group_by("prefix_hashes").agg(pl.col(PLACE).min())
    known = first.sort(PLACE).with_row_index("number").sort("prefix_hashes").collect(engine="streaming")
    old, new = known["prefix_hashes"].to_numpy(), known["number"].cast(pl.Int64).to_numpy()
    change = partial(exchanged, old=old, new=new)
    lists = pl.col("prefix_hashes").map_batches(change, return_dtype=pl.List(pl.Int64), is_elementwise=True)
    return rows.with_columns(lists), known.height


def exchanged(lists: pl.Series, old: np.ndarray, new: np.ndarray) -> pl.Series:
    """The lists with each old value, of which there is a sorted array, replaced by the new one at its place."""
    arrow = lists.rechunk().to_arrow()
    offsets = arrow.offsets.to_numpy()
    values = arrow.values.to_numpy()[offsets[0] : offsets[-1]]
    exchanged = new[np.searchsorted(old, values)] if len(values) else values
    made = pa.LargeListArray.from_arrays(pa.array(offsets - offsets[0]), pa.array(exchanged), mask=arrow.is_null())
    return pl.Series(lists.name, made)


def step(line: str) -> str:
    """A line of the history without names: how a trace was imported, or which transform it was."""
    from replay.traces.formats import formats  # only here, for their names: importing them all takes time

    if (found := re.match(r"imported as ([\w-]+)", line)) and found[1] in formats:
        return f"imported as {found[1]}; the rest is {LEFT_OUT}"
    if (found := re.match(r"(\w+) = ", line)) and found[1] in transforms:
        return f"{found[1]}; the rest is {LEFT_OUT}"
    return "generated: not measured traffic" if line.startswith("generated from") else LEFT_OUT


def nameless(change: Change) -> Change:
    """The change without what may be names: its argument where that has text, and what else was said of it."""
    argument = change.argument if plain(change.argument) else LEFT_OUT
    return replace(change, argument=argument, details=(f"more is {LEFT_OUT}",) * bool(change.details))


def plain(argument: object) -> bool:
    """Whether there is nothing but numbers, durations and factors in it."""
    if isinstance(argument, list | tuple):
        return all(map(plain, argument))
    if isinstance(argument, str):
        return bool(PATTERN.fullmatch(argument) or TIMES.fullmatch(argument))
    return isinstance(argument, int | float)

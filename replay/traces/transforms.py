"""Transforms: what an experiment may do to a trace before it is replayed, declared by name and applied in order.

A registered transform takes its argument as declared, checks it (`ExperimentError`), and gives back a function from
trace to trace. Each application records what it changed. Sums are of tokens, times are nanoseconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from replay.errors import ExperimentError, TraceError
from replay.registry import Registry, nearest
from replay.traces.durations import nanoseconds
from replay.traces.table import Change, Trace
from replay.traces.validation import blocks
from replay.traces.wording import counted, duration_text

Transform = Callable[[Trace], Trace]
TIMES = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*x\s*")
transforms: Registry[Callable[[object], Transform]] = Registry("transform")


@dataclass(frozen=True, slots=True)
class Declared:
    """A transform of an experiment, its argument already checked."""

    name: str
    argument: object
    transform: Transform

    def __call__(self, trace: Trace) -> Trace:
        """The transformed trace, with this change added to its record."""
        changed = self.transform(trace)
        before, after = trace.extent(), changed.extent()
        if not after.rows:
            raise TraceError(f"{trace.path}: {self.name} = {self.argument} leaves no request of {before.rows:,}")
        change = Change(self.name, self.argument, before, after)
        return replace(changed, changes=[*trace.changes, change])


def parse_transforms(entries: Iterable[object]) -> list[Declared]:
    """An experiment's `transforms`, such as `[{"window": ["20m", "35m"]}, {"speed": 2.0}]`, checked.

    Raises `ExperimentError` for the first that is wrong; the caller says where it stood.
    """
    declared = []
    for entry in entries:
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise ExperimentError(f"{entry!r} is not one name with its argument, such as {{ speed = 2.0 }}")
        ((name, argument),) = entry.items()
        declared.append(Declared(str(name), argument, transforms[str(name)](argument)))
    return declared


def apply_transforms(trace: Trace, declared: Sequence[Declared]) -> Trace:
    """The trace after all of them, in order; the trace given stays as it is."""
    for transform in declared:
        trace = transform(trace)
    return trace


@transforms.register("limit")
def limit(argument: object) -> Transform:
    """Keep the first N requests: { limit = 100 }"""
    rows = min(whole("limit", argument), 2**32 - 2)  # Polars counts rows in 32 bits
    return lambda trace: trace.with_rows(trace.rows.head(rows))


@transforms.register("window")
def window(argument: object) -> Transform:
    """Keep the requests from one time of the trace up to, not including, another: { window = ["20m", "35m"] }"""
    if not isinstance(argument, list | tuple) or len(argument) != 2:
        raise ExperimentError(f'window: {argument!r} is not a pair of times, such as ["20m", "35m"]')
    start, end = (nanoseconds(time, "window") for time in argument)
    if start >= end:
        raise ExperimentError(f"window: {argument[0]!r} is not before {argument[1]!r}")

    def cut(trace: Trace) -> Trace:
        kept = trace.with_rows(trace.rows.filter(pl.col("arrival").is_between(start, end, closed="left")))
        if not kept.extent().rows:
            span = duration_text(trace.span_nanoseconds)
            raise TraceError(
                f"{trace.path}: no request arrives from {argument[0]} to {argument[1]}; its span is {span}"
            )
        return from_zero(kept)

    return cut


@transforms.register("speed")
def speed(argument: object) -> Transform:
    """Let time pass so many times faster, think times too: { speed = 2.0 }"""
    factor = positive("speed", argument)

    def hasten(trace: Trace) -> Trace:
        if trace.span_nanoseconds / factor >= 2**63:
            raise TraceError(f"{trace.path}: speed = {argument} makes the span longer than 292 years")
        arrival = (pl.col("arrival") / factor).round().cast(pl.Int64)
        return trace.with_rows(trace.rows.with_columns(arrival, pl.col("think_time_ms") / factor))

    return hasten


@transforms.register("rate")
def rate(argument: object) -> Transform:
    """So many requests a second, on average, or so many times as many as now: { rate = 5.0 } or { rate = "2x" }"""
    match = TIMES.fullmatch(argument) if isinstance(argument, str) else None
    wanted = float(match[1]) if match else argument
    if isinstance(wanted, bool) or not isinstance(wanted, int | float) or not 0 < wanted < math.inf:
        raise ExperimentError(f'rate: {argument!r} is neither requests per second above 0 nor a factor such as "2x"')

    def hasten(trace: Trace) -> Trace:
        mean = trace.extent().requests_per_second
        if mean is None:
            raise TraceError(f"{trace.path}: rate = {argument}: all requests arrive at once, which no rate changes")
        return speed(wanted if match else wanted / mean)(trace)

    return hasten


@transforms.register("scale_tokens")
def scale_tokens(argument: object) -> Transform:
    """Multiply all token counts, never below one, and the hashes' block size: { scale_tokens = 0.25 }"""
    factor = positive("scale_tokens", argument)

    def scale(trace: Trace) -> Trace:
        refuse_content(trace, "scale_tokens")
        counts = pl.col("prompt_tokens", "output_tokens", "max_tokens")
        if trace.values(most=pl.max_horizontal(counts.max()))["most"] * factor >= 2**62:
            raise TraceError(f"{trace.path}: scale_tokens = {argument} makes more tokens than can be counted")
        rows = trace.rows.with_columns((counts * factor).round().clip(1).cast(pl.Int64))
        if trace.block_size is None:
            return trace.with_rows(rows)
        scaled = trace.block_size * factor
        if scaled < 1:
            raise TraceError(
                f"{trace.path}: scale_tokens = {argument} leaves less than one token of the hashes' blocks of "
                f"{trace.block_size}; use at least {1 / trace.block_size:.4g}"
            )
        block = round(scaled)
        note = f"scale_tokens = {argument}: the hashes' block of {scaled:g} tokens is rounded to {block}"
        notes = trace.notes if block == scaled else [*trace.notes, note]
        return fit_hashes(trace.with_rows(rows, block_size=block, notes=notes))

    return scale


@transforms.register("max_prompt")
def max_prompt(argument: object) -> Transform:
    """Cut longer prompts to N tokens, their hashes and token ids too: { max_prompt = 2048 }"""
    tokens = whole("max_prompt", argument)

    def cut(trace: Trace) -> Trace:
        longer = pl.col("prompt_tokens") > tokens
        cut_texts = longer & pl.col("prompt").is_not_null() & pl.col("prompt_token_ids").is_null()
        texts = trace.values(texts=cut_texts.sum())["texts"]
        if texts:
            raise TraceError(
                f"{trace.path}: max_prompt cannot cut text, which {counted(texts, 'longer prompt')} have; "
                "give the prompts as prompt_token_ids, or leave the column 'prompt' out"
            )
        rows = trace.rows.with_columns(
            pl.col("prompt_tokens").clip(upper_bound=tokens),
            pl.col("prompt_token_ids").list.head(tokens),
            pl.when(longer).then(None).otherwise(pl.col("prompt")).alias("prompt"),
        )
        return fit_hashes(trace.with_rows(rows))

    return cut


@transforms.register("max_output")
def max_output(argument: object) -> Transform:
    """Cut longer answers to N tokens, and what clients declared: { max_output = 512 }"""
    tokens = whole("max_output", argument)
    capped = pl.col("output_tokens", "max_tokens").clip(upper_bound=tokens)
    return lambda trace: trace.with_rows(trace.rows.with_columns(capped))


@transforms.register("without_users")
def without_users(argument: object) -> Transform:
    """Leave out the requests of these users, and nothing else: { without_users = ["pipeline"] }"""
    users = argument if isinstance(argument, list | tuple) else []
    if not users or not all(isinstance(user, str) for user in users):
        raise ExperimentError(f'without_users: {argument!r} is not a list of users, such as ["pipeline"]')

    def leave_out(trace: Trace) -> Trace:
        known = (
            trace.rows.select(pl.col("user").drop_nulls().unique().sort()).collect(engine="streaming")["user"].to_list()
        )
        for user in users:
            if user not in known:
                raise TraceError(
                    f"{trace.path}: without_users names {user!r}, of whom there is no request; {nearest(user, known)}"
                )
        kept = trace.rows.filter(~pl.col("user").is_in(users).fill_null(value=False))
        largest = trace.values(pl.col("output_tokens").max())["output_tokens"]
        declared = pl.col("max_tokens").fill_null(largest)  # what a policy may see stays
        return from_zero(trace.with_rows(kept.with_columns(declared)))

    return leave_out


def from_zero(trace: Trace) -> Trace:
    """The trace with its first arrival at 0 again."""
    first = trace.values(pl.col("arrival").min())["arrival"]
    return trace.with_rows(trace.rows.with_columns(pl.col("arrival") - first)) if first else trace


def fit_hashes(trace: Trace) -> Trace:
    """The trace without hashes of blocks that begin beyond a prompt's end; a block that is cut keeps its hash."""
    if trace.block_size is None:
        return trace
    started = blocks(pl.col("prompt_tokens"), trace.block_size, "ceil")
    return trace.with_rows(trace.rows.with_columns(pl.col("prefix_hashes").list.head(started)), hash_tail="ceil")


def refuse_content(trace: Trace, name: str) -> None:
    """Refuse a trace with real prompts: their number of tokens is what it is."""
    for column in ("prompt", "prompt_token_ids"):
        if trace.values(given=pl.col(column).is_not_null().any())["given"]:
            raise TraceError(f"{trace.path}: {name} cannot change real prompts; leave the column {column!r} out")


def whole(name: str, argument: object) -> int:
    """The argument as a count of at least 1; one that no trace can reach is as good as the largest."""
    if isinstance(argument, bool) or not isinstance(argument, int) or argument < 1:
        raise ExperimentError(f"{name}: {argument!r} is not a whole number of at least 1")
    return min(argument, 2**62)


def positive(name: str, argument: object) -> float:
    """The argument as a factor above 0."""
    if isinstance(argument, bool) or not isinstance(argument, int | float) or not 0 < argument < math.inf:
        raise ExperimentError(f"{name}: {argument!r} is not a number above 0")
    return float(argument)

"""Less of a trace: the first requests, a stretch of its time, or all but the requests of some users."""

from __future__ import annotations

import polars as pl

from replay.errors import ExperimentError, TraceError
from replay.traces.durations import nanoseconds
from replay.traces.table import Trace
from replay.traces.transforms.arguments import whole
from replay.traces.transforms.declaring import Transform, from_zero, transforms, with_cut_sessions
from replay.traces.transforms.lookup import refuse_absent
from replay.traces.wording import duration_text


@transforms.register("limit")
def limit(argument: object) -> Transform:
    """Keep the first N requests: { limit = 100 }"""
    rows = min(whole("limit", argument), 2**32 - 2)  # Polars counts rows in 32 bits
    return lambda trace: with_cut_sessions(trace, trace.with_rows(trace.rows.head(rows)))


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
        first = kept.values(pl.col("arrival").min())["arrival"]
        if first is None:
            span = duration_text(trace.span_nanoseconds)
            raise TraceError(
                f"{trace.path}: no request arrives from {argument[0]} to {argument[1]}; its span is {span}"
            )
        kept = kept.with_rows(kept.rows.with_columns(pl.col("arrival") - first)) if first else kept
        return with_cut_sessions(trace, kept)

    return cut


@transforms.register("without_users")
def without_users(argument: object) -> Transform:
    """Leave out the requests of these users, and nothing else: { without_users = ["pipeline"] }"""
    users = argument if isinstance(argument, list | tuple) else []
    if not users or not all(isinstance(user, str) for user in users):
        raise ExperimentError(f'without_users: {argument!r} is not a list of users, such as ["pipeline"]')

    def leave_out(trace: Trace) -> Trace:
        refuse_absent(trace, "user", users, "without_users")
        kept = trace.rows.filter(~pl.col("user").is_in(users).fill_null(value=False))
        largest = trace.values(pl.col("output_tokens").max())["output_tokens"]
        declared = pl.col("max_tokens").fill_null(largest)  # what a policy may see stays
        return with_cut_sessions(trace, from_zero(trace.with_rows(kept.with_columns(declared))))

    return leave_out

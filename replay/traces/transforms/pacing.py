"""When requests arrive: faster or slower, at a rate that is asked for, or without the long gaps."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from replay.errors import ExperimentError, TraceError
from replay.traces.durations import nanoseconds
from replay.traces.table import Trace
from replay.traces.transforms.arguments import as_number, positive
from replay.traces.transforms.declaring import Transform, noted, transforms
from replay.traces.wording import counted, duration_text

TIMES = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*x\s*")


@transforms.register("speed")
def speed(argument: object) -> Transform:
    """Let time pass so many times faster, think times too: { speed = 2.0 }"""
    factor = positive("speed", argument)
    times = min(1 / factor, 1e300)  # a division by a number rounds by where in a chunk the row is; a product does not

    def hasten(trace: Trace) -> Trace:
        if trace.span_nanoseconds / factor >= 2**63:
            raise TraceError(f"{trace.path}: speed = {argument} makes the span longer than 292 years")
        arrival = (pl.col("arrival") * times).round().cast(pl.Int64)
        return trace.with_rows(trace.rows.with_columns(arrival, pl.col("think_time_ms") * times))

    return hasten


@transforms.register("rate")
def rate(argument: object) -> Transform:
    """So many requests a second, on average, or so many times as many as now: { rate = 5.0 } or { rate = "2x" }"""
    match = TIMES.fullmatch(argument) if isinstance(argument, str) else None
    wanted = float(match[1]) if match else as_number(argument)
    if wanted is None or wanted <= 0:
        raise ExperimentError(f'rate: {argument!r} is neither requests per second above 0 nor a factor such as "2x"')

    def hasten(trace: Trace) -> Trace:
        mean = trace.extent().requests_per_second
        if mean is None:
            raise TraceError(f"{trace.path}: rate = {argument}: all requests arrive at once, which no rate changes")
        return speed(wanted if match else wanted / mean)(trace)

    return hasten


@transforms.register("idle_gap_cap")
def idle_gap_cap(argument: object) -> Transform:
    """Shorten gaps without any arrival to this, think times as they are: { idle_gap_cap = "30s" }"""
    longest = nanoseconds(argument, "idle_gap_cap")
    if not longest:
        raise ExperimentError("idle_gap_cap: a gap of 0 would make all requests arrive at once; give a longer one")

    def shorten(trace: Trace) -> Trace:
        gap = pl.col("arrival").diff().alias("gap")
        gaps = trace.rows.select("arrival", gap).filter(pl.col("gap") > longest).collect(engine="streaming")
        if gaps.is_empty():
            return noted(trace, "no gap is longer")
        ends, cut = gaps["arrival"].to_numpy(), (gaps["gap"] - longest).cum_sum().to_numpy()
        cut = np.concatenate([[0], cut])

        def earlier(arrivals: pl.Series) -> pl.Series:
            """Less what was cut of the gaps that have ended by then: of each piece of a scan by itself."""
            return arrivals - pl.Series(cut[np.searchsorted(ends, arrivals.to_numpy(), side="right")])

        arrival = pl.col("arrival").map_batches(earlier, return_dtype=pl.Int64, is_elementwise=True)
        told = f"{counted(gaps.height, 'gap')} shortened, by {duration_text(int(cut[-1]))} in all"
        return noted(trace.with_rows(trace.rows.with_columns(arrival)), told)

    return shorten

"""When requests arrive: faster or slower, at a rate that is asked for, or without long gaps and long thoughts."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from replay.clock import NANOSECONDS
from replay.errors import ExperimentError, TraceError
from replay.traces.durations import nanoseconds
from replay.traces.scratch import Scratch
from replay.traces.table import Trace
from replay.traces.transforms.arguments import as_number, positive
from replay.traces.transforms.declaring import Transform, noted, transforms
from replay.traces.turns import FOLLOWS, turns
from replay.traces.wording import counted, duration_text

MILLISECOND = NANOSECONDS // 1_000
THINKS = pl.col("session").is_not_null() & (pl.col("think_time_ms") > 0)
NO_THINK_TIMES = "no request has a think time; what its arrivals leave idle, idle_gap_cap shortens"
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
    """Shorten gaps without any arrival to this, and think times by what they lose of it: { idle_gap_cap = "30s" }"""
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

        def cut_before(instants: pl.Series) -> pl.Series:
            """What was cut of the gaps that have ended by then: of each piece of a scan by itself."""
            return pl.Series(cut[np.searchsorted(ends, instants.to_numpy(), side="right")])

        def cut_until(instants: pl.Expr) -> pl.Expr:
            return instants.map_batches(cut_before, return_dtype=pl.Int64, is_elementwise=True)

        arrival, think = pl.col("arrival"), pl.col("think_time_ms")
        changed = [arrival - cut_until(arrival)]
        told = [f"{counted(gaps.height, 'gap')} shortened, by {duration_text(int(cut[-1]))} in all"]
        thought = THINKS & (think * MILLISECOND > longest)
        if trace.values(any=thought.any())["any"]:
            begun = pl.max_horizontal(arrival - (think * MILLISECOND).round().cast(pl.Int64), first_arrival(trace))
            less = (cut_until(arrival) - cut_until(begun.fill_null(0))) / MILLISECOND
            shorter = pl.max_horizontal(think - less, longest / MILLISECOND)
            shorter = pl.when(thought & (less > 0)).then(shorter).otherwise(think).alias("think_time_ms")
            changed.append(shorter)
            told.append(think_note(trace, shorter))
        return noted(trace.with_rows(trace.rows.with_columns(changed)), *told)

    return shorten


@transforms.register("think_time_cap")
def think_time_cap(argument: object) -> Transform:
    """Shorten think times to this; later turns of the session arrive sooner by as much: { think_time_cap = "30s" }"""
    longest = nanoseconds(argument, "think_time_cap")
    most = longest / MILLISECOND

    def shorten(trace: Trace) -> Trace:
        think, arrival = pl.col("think_time_ms"), pl.col("arrival")
        found = trace.values(known=THINKS.any(), longer=(THINKS & (think > most)).any(), rows=pl.len())
        if not found["longer"]:
            return noted(trace, "no think time is longer" if found["known"] else NO_THINK_TIMES)
        cut = pl.when(FOLLOWS).then((think - most).clip(0).fill_null(0) * MILLISECOND).otherwise(0)
        sooner = np.zeros(found["rows"], np.int64)
        for part in turns(trace.rows.with_row_index("place"), "place", "think_time_ms"):
            before = part.with_columns(cut=cut.round().cast(pl.Int64)).with_columns(
                pl.col("cut").cum_sum().over("session")
            )
            moved = before.select("place", by=arrival - (arrival - pl.col("cut")).cum_max().over("session"))
            sooner[moved["place"].to_numpy()] = moved["by"].to_numpy()
        by = pl.col("place").map_batches(
            lambda places: pl.Series(sooner[places.to_numpy()]), pl.Int64, is_elementwise=True
        )
        shorter = pl.when(THINKS).then(think.clip(upper_bound=most)).otherwise(think).alias("think_time_ms")
        rows = trace.rows.with_row_index("place").with_columns(arrival - by, shorter).drop("place")
        return noted(in_order(trace, rows), think_note(trace, shorter))

    return shorten


def first_arrival(trace: Trace) -> pl.Expr:
    """The first arrival of a row's session, for those rows that think."""
    name = pl.col("session").hash()
    known = trace.rows.filter(THINKS).select(session=name).unique()
    firsts = trace.rows.select("arrival", session=name).join(known, on="session", how="semi")
    found = firsts.group_by("session").agg(pl.col("arrival").min()).collect(engine="streaming").sort("session")
    names, arrivals = found["session"].to_numpy(), found["arrival"].to_numpy()

    def look_up(pieces: pl.Series) -> pl.Series:
        return pl.Series(arrivals[np.minimum(np.searchsorted(names, pieces.to_numpy()), len(names) - 1)])

    return name.map_batches(look_up, return_dtype=pl.Int64, is_elementwise=True)


def think_note(trace: Trace, shorter: pl.Expr) -> str:
    """How many think times are shorter now, and by how much."""
    less = pl.col("think_time_ms") - shorter
    found = trace.values(times=(less > 0).sum(), by=(less * MILLISECOND).sum())
    return f"{counted(found['times'], 'think time')} shortened, by {duration_text(round(found['by']))} in all"


def in_order(trace: Trace, rows: pl.LazyFrame) -> Trace:
    """The trace with rows whose arrivals were changed, in order of them, ties as they were."""
    if not trace.large:
        return trace.with_rows(rows.sort("arrival", maintain_order=True))
    scratch = Scratch()
    return trace.with_rows(scratch.by_arrival(rows), scratch=scratch)

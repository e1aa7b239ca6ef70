"""When each request of a trace would come and go if nobody waited, and what is resident meanwhile, over time.

It reckons at a stated pace, the same for all requests however many run; how fast an engine is it does not know. It
keeps sums by span of time, so that a trace of any length takes little memory; of few rows also every coming and going.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.clock import NANOSECONDS

LOOKS = 64  # within each span
MOST_EXACT = 1_000_000  # requests
MOST_TURNS = 3_000_000


@dataclass(slots=True, frozen=True)
class Resident:
    """Requests and tokens resident over equal spans of `width` seconds from the first arrival on: the mean and the most
    in each. Tokens are as in `demand.Occupancy`: a prompt from when it is due, its answer as it grows, nothing shared.

    Where the most is not `exact` it is the largest found at so many `LOOKS` within the span, and of the means between
    them. `end` is when the last request goes.
    """

    width: float
    end: float
    exact: bool
    mean_requests: NDArray[Any]
    most_requests: NDArray[Any]
    mean_tokens: NDArray[Any]
    most_tokens: NDArray[Any]


def paced(rows: pl.LazyFrame, *, ttft: float, tpot: float, most_turns: int = MOST_TURNS) -> pl.LazyFrame:
    """When each request is `due`, has its `first` token and its `end`, in nanoseconds, beside prompt and output tokens.

    The first token comes `ttft` seconds after it is due and every further one `tpot` seconds later. A turn of a session
    is due as in a replay: at its arrival, or its think time after the end of the turn before, if that is later. The
    order of the rows is lost. Of sessions, at most about `most_turns` turns are looked at together.
    """
    first = round(ttft * NANOSECONDS)
    service = first + ((pl.col("output_tokens") - 1) * (tpot * NANOSECONDS)).round().cast(pl.Int64)
    lengths = ("due", "prompt_tokens", "output_tokens")
    turns = rows.filter(pl.col("session").is_not_null())
    parts = -(-turns.select(pl.len()).collect(engine="streaming").item() // most_turns)
    served = [rows.filter(pl.col("session").is_null()).with_columns(due=pl.col("arrival")).select(lengths)]
    for part in range(parts):
        of_part = turns.filter(pl.col("session").hash() % parts == part)
        served.append(_due(of_part, service).select(lengths).collect(engine="streaming").lazy())
    return pl.concat(served).with_columns(first=pl.col("due") + first, end=pl.col("due") + service)


def _due(turns: pl.LazyFrame, service: pl.Expr) -> pl.LazyFrame:
    """When each turn of whole sessions is due, of which each takes `service` nanoseconds.

    That is max(arrival, due before + what it takes). Less the sum of what all turns before it took, it is the running
    maximum of the arrivals, each less the same.
    """
    think = (pl.col("think_time_ms").fill_null(0) * 1_000_000).round().cast(pl.Int64)
    return (
        turns.select("arrival", "prompt_tokens", "output_tokens", "session", pl.col("turn").fill_null(0), think=think)
        .sort("session", "turn", "arrival", maintain_order=True)
        .with_columns(taken=(service.shift(1) + pl.col("think")).over("session").fill_null(0))
        .with_columns(taken=pl.col("taken").cum_sum().over("session"))
        .with_columns(due=pl.col("taken") + (pl.col("arrival") - pl.col("taken")).cum_max().over("session"))
    )


def resident(rows: pl.LazyFrame, *, ttft: float, tpot: float, spans: int, most_exact: int = MOST_EXACT) -> Resident:
    """What is there over time at that pace (see `paced`), in at most so many spans and one."""
    events = _events(paced(rows, ttft=ttft, tpot=tpot))
    facts = events.select(pl.col("at").max(), rows=pl.len() // 3).collect(engine="streaming").row(0, named=True)
    look = max(-(-facts["at"] // (spans * LOOKS)), 1)
    width = look * LOOKS
    count = facts["at"] // width + 1
    sums = _sums(events, look, count * LOOKS)
    still = np.zeros(count * LOOKS)
    pace = [sums[name] / tpot for name in ("growing", "growing x left", "growing x left squared")]
    seconds = look / NANOSECONDS
    levels = (
        *_levels(seconds, sums["requests"], sums["requests x left"], still, still, still),
        *_levels(seconds, sums["tokens"], sums["tokens x left"], *pace),
    )
    requests, most_requests, tokens, most_tokens = (each.reshape(count, LOOKS) for each in levels)
    most = [most_requests.max(axis=1), most_tokens.max(axis=1)]
    exact = facts["rows"] <= most_exact
    if exact:
        most = [np.maximum(*both) for both in zip(most, _most(events.collect(), tpot, width, count), strict=True)]
    end = facts["at"] / NANOSECONDS
    return Resident(width / NANOSECONDS, end, exact, requests.mean(axis=1), most[0], tokens.mean(axis=1), most[1])


def _events(served: pl.LazyFrame) -> pl.LazyFrame:
    """What comes and goes, and `at` which nanosecond.

    `growing` counts the answers that begin to grow, by a token each `tpot`, less those that end. At one instant tokens
    come, then requests go, then others come: that is `turn`.
    """
    prompt, output = pl.col("prompt_tokens"), pl.col("output_tokens")
    grows = (output > 1).cast(pl.Int64)
    none, one = pl.lit(0, pl.Int64), pl.lit(1, pl.Int64)
    return pl.concat(
        [
            served.select(at=pl.col("due"), turn=2, requests=one, tokens=prompt, growing=none),
            served.select(at=pl.col("first"), turn=0, requests=none, tokens=one, growing=grows),
            served.select(at=pl.col("end"), turn=1, requests=-one, tokens=-prompt - output, growing=-grows),
        ]
    )


def _sums(events: pl.LazyFrame, width: int, count: int) -> dict[str, NDArray[Any]]:
    """By span of time: what comes and goes, and each of it times the seconds that are then `left` of the span."""
    left = (width - pl.col("at") % width) / NANOSECONDS
    summed = {name: pl.col(name).sum() for name in ("requests", "tokens", "growing")}
    summed |= {f"{name} x left": (pl.col(name) * left).sum() for name in summed}
    summed["growing x left squared"] = (pl.col("growing") * left * left).sum()
    found = events.group_by(span=pl.col("at") // width).agg(**summed).collect(engine="streaming")
    filled = {name: np.zeros(count) for name in summed}
    for name, values in filled.items():
        values[found["span"].to_numpy()] = found[name].to_numpy()
    return filled


def _most(events: pl.DataFrame, tpot: float, width: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The most requests and tokens in each span that any event finds or leaves."""
    events = events.sort("at", "turn")
    at = events["at"].to_numpy()
    seconds, growing = at / NANOSECONDS, events["growing"].to_numpy()
    pace = np.cumsum(growing) / tpot
    base = np.cumsum(events["tokens"].to_numpy() - growing * seconds / tpot)
    requests, tokens = np.zeros(count), np.zeros(count)
    np.maximum.at(requests, at // width, np.cumsum(events["requests"].to_numpy()))
    np.maximum.at(tokens, at // width, base + pace * seconds)
    np.maximum.at(tokens, (at[1:] - 1) // width, base[:-1] + pace[:-1] * seconds[1:])
    return requests, tokens


def _levels(
    width: float,
    jumps: NDArray[Any],
    jumps_left: NDArray[Any],
    slopes: NDArray[Any],
    slopes_left: NDArray[Any],
    slopes_left_squared: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The mean within each span, and the most of it and of what is there at the span's ends."""
    slope = np.concatenate([[0.0], np.cumsum(slopes)[:-1]])  # as the span begins
    after = np.cumsum(slope * width + jumps + slopes_left)
    before = np.concatenate([[0.0], after[:-1]])
    mean = before + slope * width / 2 + (jumps_left + slopes_left_squared / 2) / width
    return mean, np.maximum(np.maximum(before, after), mean)

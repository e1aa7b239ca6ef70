"""How many tokens of KV pool a trace asks for: by request, by requests at once, and over time at a given speed.

What it will really hold at once depends on an engine's speed and on a scheduler, which it does not know. So it gives
bounds: the largest requests together, and everybody resident from arrival on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.clock import NANOSECONDS
from replay.traces.describing.describe import lengths
from replay.traces.describing.resident import paced
from replay.traces.table import Trace

TOKENS = (pl.col("prompt_tokens") + pl.col("output_tokens")).alias("tokens")


@dataclass(slots=True, frozen=True)
class Together:
    """What `requests` requests hold at once: as many mean ones, and the largest there are, each in whole blocks."""

    requests: int
    mean_tokens: float
    largest_tokens: int


@dataclass(slots=True, frozen=True)
class Occupancy:
    """Requests and tokens resident at once, over time; means are over the time from the first arrival to the last end.

    A request holds its prompt from its arrival on and its answer as it grows, until it ends.
    """

    mean_requests: float
    peak_requests: int
    mean_tokens: float
    peak_tokens: float


def request_tokens(trace: Trace) -> dict[str, float | int]:
    """Sum, mean, extremes and percentiles of the tokens of prompt and answer."""
    return lengths(trace.rows, TOKENS)


def together(trace: Trace, block_size: int, counts: Sequence[int]) -> list[Together]:
    """What each of `counts` requests would hold at once; those beyond the trace's own number are left out."""
    held = (TOKENS + block_size - 1) // block_size * block_size
    most = trace.rows.select(held.top_k(max(counts, default=0))).collect(engine="streaming").to_series()
    largest: list[int] = most.sort(descending=True).cum_sum().to_list()
    mean = trace.values(mean=TOKENS.mean())["mean"]
    return [Together(count, count * mean, largest[count - 1]) for count in counts if count <= len(largest)]


def larger_than(trace: Trace, tokens: int) -> int:
    """How many requests are larger than a pool of so many tokens."""
    count: int = trace.values(larger=TOKENS.gt(tokens).sum())["larger"]
    return count


def occupancy(trace: Trace, *, ttft: float, tpot: float) -> Occupancy:
    """How much is resident over time if nobody waits: the first token `ttft` seconds after a request is due, every
    further one `tpot` seconds later, both above 0, however many run. A turn of a session is due as in a replay: at its
    arrival, or its think time after the end of the turn before, if that is later.
    """
    due, prompt, output = _requests(trace, ttft, tpot)
    first = due + ttft
    end = first + tpot * (output - 1)
    horizon = end.max()
    grown = tpot * (output - 1) * (output + 1) / 2  # the area of an answer that grows from 1 to `output` tokens
    area = prompt * (end - due) + grown
    return Occupancy(
        mean_requests=float((end - due).sum() / horizon),  # Little's law: requests a second x seconds of each
        peak_requests=round(_peak(due, end, np.ones(len(due)), np.zeros(len(due)), first)),
        mean_tokens=float(area.sum() / horizon),
        peak_tokens=_peak(due, end, prompt, output, first),
    )


def _requests(trace: Trace, ttft: float, tpot: float) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """When each request is due in seconds, its prompt and its answer in tokens."""
    served = paced(trace.rows, ttft=ttft, tpot=tpot).collect()
    due = served["due"].to_numpy() / NANOSECONDS
    return due, served["prompt_tokens"].to_numpy().astype(float), served["output_tokens"].to_numpy().astype(float)


def _peak(
    due: NDArray[Any], end: NDArray[Any], prompt: NDArray[Any], output: NDArray[Any], first: NDArray[Any]
) -> float:
    """The largest sum over time of what is held: `prompt` from `due` on, and from `first` to `end` up to `output` more.

    Each holds a line `base + slope * time`, begun and taken away by events; the sum is looked at before and after each.
    At one instant, whoever ends is gone before others come.
    """
    begun = np.minimum(output, 1)
    slope = np.divide(output - begun, end - first, out=np.zeros(len(due)), where=end > first)
    answer = begun - slope * first
    times = np.concatenate([first, end, due])
    bases = np.concatenate([answer, -prompt - answer, prompt])
    slopes = np.concatenate([slope, -slope, np.zeros(len(due))])
    order = np.lexsort((np.repeat([0, 1, 2], len(due)), times))
    base, pace, at = np.cumsum(bases[order]), np.cumsum(slopes[order]), times[order]
    after = base + pace * at
    before = base[:-1] + pace[:-1] * at[1:]
    return float(max(after.max(), before.max()))

"""How unevenly work arrives: what queues feel of a trace, and distributions of gaps and lengths do not show.

It knows rows with numbers for names (`rows`). What an engine makes of the work is not known here.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.clock import NANOSECONDS
from replay.traces.fitting.distances import Numbers, correlation

WINDOWS = (1, 10, 60)  # seconds in which what arrives is added up
FEWEST_WINDOWS = 8
APART = (1, 10, 60)  # seconds between two of one second that are compared
OUTPUT_WEIGHT = 2  # of a token of an answer, beside one of a prompt, in what a request costs


def at_once(instants: NDArray[np.int64]) -> float | None:
    """How many arrive when the one before them did, of all but the first; null of less than two."""
    return float((np.diff(instants) == 0).mean()) if len(instants) > 1 else None


def crowding(frame: pl.DataFrame) -> dict[str, float | None]:
    """How unevenly requests, tokens of answers and work arrive, in windows of several widths.

    Turns that wait for others have no arrival to be counted at: where there are sessions, only their beginnings are.
    """
    starts = frame.filter("first")
    prompt, output = (starts[name].to_numpy().astype(np.float64) for name in ("prompt_tokens", "output_tokens"))
    weights = {"requests": np.ones(starts.height)}
    if not frame["sid"].count():
        weights |= {"output tokens": output, "work": prompt + OUTPUT_WEIGHT * output}
    instants = starts["arrival"].to_numpy()
    found = {
        f"{name} in windows of {width} s: index of dispersion": dispersion(sums_in(instants, each, width), each)
        for width in WINDOWS
        for name, each in weights.items()
    }
    if "work" in weights:
        found["answers in windows of 60 s, mean: correlation with requests"] = crowded_answers(instants, output)
    by_second = sums_in(instants, weights[max(weights)], 1)
    return found | {
        f"{max(weights)} in one second with that {apart} s before, correlation": correlation(
            by_second[:-apart], by_second[apart:]
        )
        for apart in APART
        if len(by_second) >= FEWEST_WINDOWS * apart
    }


def crowded_answers(instants: NDArray[np.int64], output: Numbers) -> float | None:
    """Whether answers are longer when more requests come (above 0), or shorter: what decides how long a queue lasts."""
    many, tokens = (sums_in(instants, each, WINDOWS[-1]) for each in (np.ones(len(output)), output))
    if len(many) < FEWEST_WINDOWS:
        return None
    some = many > 0
    return correlation(many[some], tokens[some] / many[some])


def sums_in(instants: NDArray[np.int64], weights: Numbers, seconds: int) -> Numbers:
    """The weights that arrive in each whole window of so many seconds, from the first arrival on."""
    if not len(instants):
        return np.zeros(0)
    place = (instants - instants[0]) // (seconds * NANOSECONDS)
    sums = np.bincount(place, weights=weights).astype(np.float64)
    return sums[:-1]  # the last window is not a whole one


def dispersion(sums: Numbers, weights: Numbers) -> float | None:
    """Variance by mean of what arrives in a window, so divided that it is 1 where each comes by itself (Poisson) and
    is as large as chance will have it: E[w] / E[w^2] of single weights. Null for a span of fewer than eight windows.
    """
    if len(sums) < FEWEST_WINDOWS or not sums.any():
        return None
    return float(sums.var() / sums.mean() * weights.mean() / (weights**2).mean())

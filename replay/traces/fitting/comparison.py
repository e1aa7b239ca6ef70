"""Two traces side by side, subject by subject: how far apart, and how far apart chance alone puts such samples.

It knows rows with numbers for names (`rows`), and not which of the two was fitted to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.clock import NANOSECONDS
from replay.traces.fitting.arrivals import counts_in
from replay.traces.fitting.crowding import at_once, crowding
from replay.traces.fitting.distances import Sample, ks_distance, lag_one, rank_correlation, sample_of

EACH = 50  # requests in a counting window, on average
MOST_COUNTED = 500


@dataclass(frozen=True, slots=True)
class Line:
    """One subject: the distance of trace and fit, `chance` between two fits of other seeds, `halves` between the
    first and the second half of the trace; the two samples; null where there is none.
    """

    subject: str
    distance: float | None
    chance: float | None
    halves: float | None
    trace: Sample
    fit: Sample


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of each, where a distribution would not do."""

    subject: str
    trace: float | None
    fit: float | None
    chance: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that is compared, of so many requests of each."""

    lines: list[Line]
    figures: list[Figure]
    trace_rows: int
    fit_rows: int


def compare(trace: pl.DataFrame, fit: pl.DataFrame, again: pl.DataFrame) -> Comparison:
    """A line for each subject of which there is anything; `again` is drawn with another seed than `fit`."""
    windows = max(10, min(MOST_COUNTED, trace.height // EACH))
    quarters = prompt_quarters(trace)
    half = trace.height // 2
    frames = trace, fit, again, trace.head(half), trace.tail(trace.height - half)
    one, two, other, first, second = (samples(frame, windows, quarters) for frame in frames)
    lines = [
        Line(
            subject,
            ks_distance(one[subject], two[subject]),
            ks_distance(two[subject], other[subject]),
            ks_distance(first[subject], second[subject]),
            one[subject],
            two[subject],
        )
        for subject in one
        if one[subject].size
    ]
    told = [figures(frame, windows) for frame in frames[:3]]
    return Comparison(
        lines,
        [Figure(name, *(each.get(name) for each in told)) for name in told[0] if told[0][name] is not None],
        trace.height,
        fit.height,
    )


def samples(frame: pl.DataFrame, windows: int, quarters: Sequence[int]) -> dict[str, Sample]:
    """What is compared, by subject. Turns after the first come when others are answered: only starts have gaps."""
    starts = frame.filter("first")["arrival"].to_numpy()
    sizes = frame.filter(pl.col("sid").is_not_null()).group_by("sid").len()["len"]
    named = frame.filter(pl.col("who").is_not_null())
    shares = named.group_by("who").len()["len"] / max(1, named.height)
    users = shares if len(shares) > 1 else shares.clear()
    found = {
        "gap, s": np.diff(starts) / NANOSECONDS,
        f"arrivals in 1/{windows} of the span": start_counts(frame, windows),
        "prompt tokens": frame["prompt_tokens"].to_numpy(),
        "output tokens": frame["output_tokens"].to_numpy(),
        **answers(frame, quarters),
        "a user's share": users.to_numpy(),
        "turns of a session": sizes.to_numpy(),
        "think time, ms": frame["thought"].drop_nulls().to_numpy(),
        "tokens seen before": frame["seen"].to_numpy() if frame["seen"].max() else np.array([]),
    }
    return {subject: sample_of(numbers) for subject, numbers in found.items()}


def prompt_quarters(frame: pl.DataFrame) -> list[int]:
    """The prompt lengths up to which the first, the second and the third quarter of the requests go."""
    return [int(frame["prompt_tokens"].quantile(part / 4, "lower") or 0) for part in (1, 2, 3)]


def answers(frame: pl.DataFrame, quarters: Sequence[int]) -> dict[str, NDArray[np.int64]]:
    """Answers by length of the prompt: where they depend on it, all answers together do not show it."""
    if len(set(quarters)) < len(quarters):
        return {}
    place = np.searchsorted(quarters, frame["prompt_tokens"].to_numpy(), "left")
    output = frame["output_tokens"].to_numpy()
    names = ["shortest", "second", "third", "longest"]
    return {f"output, {name} quarter of prompts": output[place == number] for number, name in enumerate(names)}


def figures(frame: pl.DataFrame, windows: int) -> dict[str, float | None]:
    """What no distribution shows: what goes together, and what follows what."""
    prompt, output = frame["prompt_tokens"].to_numpy(), frame["output_tokens"].to_numpy()
    starts = frame.filter("first")["arrival"].to_numpy()
    seen, asked = (int(frame[name].sum()) for name in ("seen", "prompt_tokens"))
    return {
        "requests": float(frame.height),
        **crowding(frame),
        "arrivals at the instant of the one before, share": at_once(starts),
        "prompt with output, rank correlation": rank_correlation(prompt, output),
        "arrivals with those of the window before, correlation": lag_one(start_counts(frame, windows)),
        "gap with the one before, rank correlation": rank_correlation(np.diff(starts)[1:], np.diff(starts)[:-1]),
        "prompt with the one before, rank correlation": rank_correlation(prompt[1:], prompt[:-1]),
        "prompt tokens seen before, share": seen / asked if seen else None,
    }


def start_counts(frame: pl.DataFrame, windows: int) -> NDArray[np.int64]:
    """Arrivals of sessions, and of requests without one, in so many windows of the frame's own span."""
    starts = frame.filter("first")["arrival"].to_numpy()
    if not len(starts):
        return starts
    return counts_in(
        starts - starts[0], np.linspace(0, max(int(np.ptp(starts)), windows), windows + 1).astype(np.int64)
    )

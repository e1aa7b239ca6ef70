"""The queue is too short for bursts: requests are turned away that would have been served a little later."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.notation import duration, number, percent, plural
from replay.report.advice.evidence import enough, real, rows, settings
from replay.report.advice.no_time_outs import GOALS, PATIENCE_S
from replay.report.advice.registry import Case, pitfall
from replay.report.findings import Findings

REJECTED = 0.01
"""Share of requests, and how many: a refusal is felt by its client, however rare."""
LEAST = 5
WINDOWS = 50
"""Parts of the arrival span that are looked at one by one."""
BURSTS = 0.3
"""Share of those parts: where more of them turn somebody away it is no burst, but more load than is served."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Consecutive parts of the arrival span in which somebody was turned away."""

    start: float  # seconds after the first request
    end: float
    rejected: int


@pitfall(
    "queue_overflow",
    "The queue overflows",
    speaks=f"from {percent(REJECTED)} of requests, and {LEAST}, that are rejected because `engine.max_waiting` wait; "
    f"a burst, if in at most {percent(BURSTS)} of {WINDOWS} equal parts of the arrivals, else too much load",
    remedy="for bursts `engine.max_waiting`, by the most that one of them had turned away, unless the last of so many "
    f"would wait for over {PATIENCE_S:g} s or {GOALS} times `goals.ttft_ms`; else `loads`, to find what is served",
    figure="of requests rejected",
    write=percent,
)
def queue_overflow(arm: Arm, findings: Findings) -> Case | None:
    """requests that were rejected because the queue was full, and when; how many are admitted a second meanwhile"""
    limit = settings(arm, "engine").get("max_waiting")
    if not isinstance(limit, int) or not enough(arm, findings):
        return None
    requests = rows(arm, "requests", "due", "status", "reason")
    full = pl.col("reason").str.starts_with("the queue is full").fill_null(value=False)
    rejected = requests.filter(pl.col("status") == "rejected", full)
    if len(rejected) < max(LEAST, REJECTED * len(requests)):
        return None
    start, end = real(requests["due"].min()), real(requests["due"].max())
    parts = ((rejected["due"] - start) / max(end - start, 1e-9) * WINDOWS).floor().clip(0, WINDOWS - 1)
    places = parts.cast(pl.Int64).to_list()
    burst, full_for = _largest(places, (end - start) / WINDOWS, len(arm.cells)), len(set(places)) / WINDOWS
    share, pace = len(rejected) / len(requests), _pace(arm)
    goal = findings.run.goals.ttft
    patience = min(PATIENCE_S, GOALS * goal) if goal else PATIENCE_S
    longer = limit + burst.rejected
    wait = longer / pace if pace else float("inf")
    what = (
        f"{percent(share)} of requests ({len(rejected):,}) were rejected because {limit:,} waited already, most "
        f"between {duration(burst.start)} and {duration(burst.end)} ({plural(burst.rejected, 'request')})"
    )
    if full_for <= BURSTS and wait <= patience:
        return Case(
            figure=share,
            cost=share,
            what=what,
            why=f"Somebody was turned away in {percent(full_for)} of the time of arrivals; in the rest of it there was "
            "room",
            settings={"engine.max_waiting": longer},
            remedy=f"that holds the largest burst whole; at the {number(pace)} requests/s that were admitted while "
            f"others waited, the last of so many waits for {duration(wait)}",
        )
    come = len(requests) / len(arm.cells) / (end - start) if end > start else float("inf")
    load = max(0.01, round(pace / come, 2))
    return Case(
        figure=share,
        cost=share,
        what=what,
        why=f"Somebody was turned away in {percent(full_for)} of the time of arrivals: {number(come)} requests/s come, "
        f"and {number(pace)} were admitted while others waited, so that a longer queue only waits longer "
        f"({duration(wait)} for the last of {longer:,})",
        settings={"loads": [load, 1.0]} if load < 1 else {},
        remedy="the first is the load that this engine carries; for the second it takes more of them, or a faster one",
    )


def _pace(arm: Arm) -> float:
    """Requests admitted a second in the steps that left others waiting: as fast as the engine takes them."""
    steps = rows(arm, "steps", "start", "end", "waiting", "admitted").filter(pl.col("waiting") > 0)
    seconds = real((steps["end"] - steps["start"]).sum())
    return real(steps["admitted"].sum()) / seconds if seconds else 0.0


def _largest(places: list[int], seconds: float, repeats: int) -> Burst:
    """Of the runs of neighbouring parts with a rejection, the one with the most, for one replay of the trace."""
    counts: dict[int, int] = {}
    for place in places:
        counts[place] = counts.get(place, 0) + 1
    bursts: list[list[int]] = []
    for place in sorted(counts):
        if bursts and place == bursts[-1][-1] + 1:
            bursts[-1].append(place)
        else:
            bursts.append([place])
    largest = max(bursts, key=lambda burst: sum(counts[place] for place in burst))
    rejected = -(-sum(counts[place] for place in largest) // repeats)
    return Burst(largest[0] * seconds, (largest[-1] + 1) * seconds, rejected)

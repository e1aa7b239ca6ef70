"""Who asks: the busiest users, each for himself, and the others as one population with shares by Zipf's law.

It knows users by their rank alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from replay.traces.fitting.distances import Numbers

STEEPEST = 4.0
ANYONE = "anyone"


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are fitted together: of one user, of `copies` of them, or of nobody."""

    name: str
    frame: pl.DataFrame
    copies: int = 1
    zipf: float | None = None


def groups(frame: pl.DataFrame, users: int) -> list[Group]:
    """The busiest `users` one by one, then the rest of them, then what is nobody's.

    Who begins nothing, and only joins sessions of others, is in no group: a session is all of one user here.
    """
    found = [Group(f"user-{who + 1}", frame.filter(pl.col("who") == who)) for who in range(users)]
    rest = frame.filter(pl.col("who") >= users)
    if rest.height:
        counts = np.sort(rest["who"].value_counts()["count"].to_numpy().astype(np.float64))[::-1]
        zipf = round(fit_zipf(counts), 2) if len(counts) > 1 else None
        found.append(Group("others" if len(counts) > 1 else f"user-{users + 1}", rest, len(counts), zipf))
    found.append(Group(ANYONE, frame.filter(pl.col("who").is_null())))
    return [group for group in found if group.frame["first"].any()]


def fit_zipf(counts: Numbers) -> float:
    """The likeliest exponent: counts, falling, of users whose shares go by rank to the power of minus it."""
    ranks = np.log(np.arange(1, len(counts) + 1))

    def likelihood(exponent: float) -> float:
        return float(-exponent * (counts * ranks).sum() - counts.sum() * np.log(np.exp(-exponent * ranks).sum()))

    return float(max(np.arange(0, STEEPEST, 0.01), key=likelihood))

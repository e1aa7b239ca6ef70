"""How far apart the service of two users grows while both have requests waiting: the difference that VTC bounds.

Both were ready to take whatever was given, so whoever got more was favoured. Y. Sheng et al., "Fairness in Serving
Large Language Models", OSDI 2024 (arXiv 2401.00588). Service is counted to the instant (see `service`).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.metrics.metric import metric
from replay.metrics.residence import waits
from replay.metrics.service import ASKED, Amounts, Numbers, ledger
from replay.metrics.statistics import finite

MOST_USERS = 32
"""Every pair of users is followed, so they cannot be many: of more, those that ask for the most service."""
CHUNK = 16_384
"""Instants that are looked at together, so that what is worked on stays near the processor."""
BACKLOGS = pl.Schema(dict.fromkeys(("start", "end", "difference", "reached"), pl.Float64))
SECONDS = pl.col("end") - pl.col("start")


@metric("service_difference", unit="weighted tokens", table="backlogs", shape="one", better="lower", count=pl.len())
def service_difference() -> pl.Expr:
    """the largest difference between what two users received since both have had requests waiting, while both still
    have: over all pairs of users (of more than 32, those that ask for the most); not defined where no two ever had.
    A request waits from due to its admission, and from an eviction to its next; at one instant, tokens count before
    who waits changes, and admitted prompts after"""
    return pl.col("reached").max()


@metric(
    "service_difference_mean", unit="weighted tokens", table="backlogs", shape="one", better="lower", count=pl.len()
)
def service_difference_mean() -> pl.Expr:
    """the same difference of the two users furthest apart at each instant, on average over the time in which any two
    had requests waiting"""
    return finite((pl.col("difference") * SECONDS).sum() / SECONDS.sum())


def backlogs(requests: pl.DataFrame) -> pl.DataFrame:
    """The times in which two users or more had requests waiting, given a cell's requests with their constants.

    Of each, the `difference` of the two furthest apart from its start on, and the most `reached` by its end. At one
    instant, tokens that were computed before it come first, then who waits and who does not, then admissions.
    """
    chosen = (
        requests.filter(pl.col("user").is_not_null(), pl.col("status") != "skipped")
        .group_by("user")
        .agg(asked=ASKED.sum())
        .sort("asked", "user", descending=[True, False])
        .head(MOST_USERS)["user"]
    )
    if len(chosen) < 2:
        return pl.DataFrame(schema=BACKLOGS)
    rows = requests.filter(pl.col("user").is_in(chosen.implode()))
    books, waiting = ledger(rows), waits(rows)
    users = rows["user"].rank("dense").to_numpy().astype(np.int64) - 1
    amounts = (books.prompts.times, books.tokens.times)
    instants = np.unique(np.concatenate([waiting.starts, waiting.ends, *amounts]))
    if len(instants) < 2:
        return pl.DataFrame(schema=BACKLOGS)
    backlogged = _backlogged(users[waiting.requests], waiting.starts, waiting.ends, instants, len(chosen))
    prompts, tokens = (_arrived(each, instants, len(chosen)) for each in (books.prompts, books.tokens))
    after = np.cumsum(prompts + tokens, axis=1)  # all that came up to and at an instant
    between = after - prompts  # before its admissions
    difference, reached = furthest(backlogged, between, after)
    found = pl.DataFrame(
        {"start": instants[:-1], "end": instants[1:], "difference": difference[:-1], "reached": reached[:-1]}
    )
    return found.filter(pl.col("difference").is_not_nan()).cast(BACKLOGS)


def furthest(backlogged: NDArray[np.bool_], between: Numbers, after: Numbers) -> tuple[Numbers, Numbers]:
    """At each instant, how far apart two backlogged users are from then on, and at most until the next instant's
    admissions; NaN where no two are. All three tables are users by instants; at the last nobody is backlogged."""
    instants = backlogged.shape[1]
    difference, reached = np.full((2, instants), np.nan)
    since = np.full((len(backlogged), len(backlogged)), np.nan)  # how far apart two were when their waiting began
    for first in range(0, instants - 1, CHUNK):
        chunk = slice(first, min(first + CHUNK, instants - 1))
        waiting, came = backlogged[:, chunk], after[:, chunk]
        before, next_before = between[:, chunk], between[:, first + 1 : chunk.stop + 1]
        for pair in combinations(range(len(backlogged)), 2):
            one, other = pair
            both = np.flatnonzero(waiting[one] & waiting[other])
            begins = np.diff(both, prepend=-1 if np.isfinite(since[pair]) else -2) > 1
            starts = np.append(since[pair], (before[one] - before[other])[both[begins]])
            if not len(both):
                since[pair] = np.nan
                continue
            origin = starts[np.cumsum(begins)]
            now = np.abs((came[one] - came[other])[both] - origin)
            then = np.abs((next_before[one] - next_before[other])[both] - origin)
            places = first + both
            difference[places] = np.fmax(difference[places], now)
            reached[places] = np.fmax(reached[places], np.maximum(now, then))
            since[pair] = origin[-1] if both[-1] == waiting.shape[1] - 1 else np.nan
    return difference, reached


def _backlogged(
    users: NDArray[np.int64], starts: Numbers, ends: Numbers, instants: Numbers, count: int
) -> NDArray[np.bool_]:
    """Whether each user has a request waiting from each instant on."""
    change = np.zeros((count, len(instants)), dtype=np.int32)
    np.add.at(change, (users, np.searchsorted(instants, starts)), 1)
    np.add.at(change, (users, np.searchsorted(instants, ends)), -1)
    return np.cumsum(change, axis=1) > 0


def _arrived(amounts: Amounts, instants: Numbers, count: int) -> Numbers:
    """What each user received at each instant."""
    cells = amounts.users * len(instants) + np.searchsorted(instants, amounts.times)
    flat = np.bincount(cells, weights=amounts.amounts, minlength=count * len(instants))
    return np.asarray(flat.reshape(count, len(instants)), dtype=np.float64)

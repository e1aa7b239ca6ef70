"""Who pays: how evenly the users were served, and who was passed over.

Jain's index: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC-TR-301, 1984.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from replay.metrics.latency import slowdown
from replay.metrics.metric import metric
from replay.metrics.statistics import finite

LEFT_QUEUE = pl.coalesce("admitted", "ended", "cell_end")
"""When a request's wait was over: admitted, or gone unserved, or still waiting when the cell was stopped."""


def _user_slowdowns() -> pl.Expr:
    """The mean slowdown of each user that has one, each once."""
    return slowdown().mean().over("user").filter(pl.col("user").is_first_distinct() & pl.col("user").is_not_null())


@metric("jain", unit="index", shape="one", better="higher", grouped=False, count=_user_slowdowns().count())
def jain() -> pl.Expr:
    """(sum x)^2 / (n * sum x^2) over the users' mean slowdowns x: 1 is even, 1/n is one user bearing it all. Users
    without a completed request have no slowdown; unserved_users counts them; requests without a user count for none"""
    users = _user_slowdowns()
    return finite(users.sum().pow(2) / (users.count() * users.pow(2).sum()))


@metric("slowdown_spread", unit="x", shape="one", better="lower", grouped=False, count=_user_slowdowns().count())
def slowdown_spread() -> pl.Expr:
    """the largest of the users' mean slowdowns / the smallest"""
    return finite(_user_slowdowns().max() / _user_slowdowns().min())


@metric("unserved_users", unit="users", shape="one", better="lower", grouped=False)
def unserved_users() -> pl.Expr:
    """users of whose requests none completed"""
    served = (pl.col("status") == "completed").any().over("user")
    return pl.col("user").filter(~served).drop_nulls().n_unique()


@metric("longest_wait", unit="s", shape="one", better="lower")
def longest_wait() -> pl.Expr:
    """the longest time from due to admission, requests that gave up or were turned away before it included"""
    return (LEFT_QUEUE - pl.col("due")).max().round(9)


@metric("overtakes", unit="requests", better="lower")
def overtakes() -> pl.Expr:
    """for each request, how many that were due later were admitted before it was (or before it left unserved)"""
    admitted = pl.col("admitted").is_not_null()
    return pl.struct("due", left=LEFT_QUEUE, admitted=admitted).map_batches(
        lambda rows: pl.Series(
            count_overtakes(
                rows.struct.field("due").to_numpy(),
                rows.struct.field("left").to_numpy(),
                rows.struct.field("admitted").to_numpy(),
            )
        ),
        return_dtype=pl.Int64,
    )


def count_overtakes(
    due: NDArray[np.float64], left: NDArray[np.float64], admitted: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """For each request, the admitted ones with a larger `due` and a smaller `left`, in n log^2 n.

    Merge counting from the bottom up: at each width, the right half of every block looks into its left half.
    """
    n = len(due)
    counts = np.zeros(n, dtype=np.int64)
    order = np.lexsort((due, left))  # of equal `left`, the earlier due comes first, so that none overtakes another
    ranks = np.unique(due, return_inverse=True)[1].astype(np.int64)[order]
    places = np.arange(n)
    width = 1
    while width < n:
        block, right = places // (2 * width), places // width % 2 == 1
        keys = block * (n + 1) + ranks  # sorts by block, then by due
        earlier = np.sort(keys[~right & admitted[order]])
        end_of_block = np.searchsorted(earlier, (block[right] + 1) * (n + 1))
        counts[order[right]] += end_of_block - np.searchsorted(earlier, keys[right], side="right")
        width *= 2
    return counts

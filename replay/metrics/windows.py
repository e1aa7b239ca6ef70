"""Fairness in windows of time: what each user received in one, beside what it could have used.

A window is a row; windows are of one length in all cells of a trace, begin a tenth of it apart, and lie within the
cell. A user's demand in a window is what its requests still lacked when it began, with all of those due within: who
asks for little is not treated badly when others get more. Service is counted to the instant (see `service`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median_high

import numpy as np
import polars as pl

from replay.clock import NANOSECONDS
from replay.metrics.metric import metric
from replay.metrics.service import Amounts, Ledger, Numbers, ledger

LONGEST = 60.0
"""Seconds of a window where the experiment names none: the 30 on each side of an instant that VTC's authors took."""
PARTS = 10
"""A window begins every tenth of its length; and where none is named, a tenth of the trace's time is long enough."""
MOST = 20_000
"""Windows beside each other in the longest cell: in one of two weeks or more they are longer than a minute."""
CHUNK = 2_000_000
"""Windows times users that are worked out at once: memory does not grow with the length of a run."""
WINDOWS = pl.Schema(
    {
        **dict.fromkeys(("start", "end"), pl.Float64),
        "users": pl.Int64,  # with demand
        **dict.fromkeys(("difference", "jain", "ratio", "gap"), pl.Float64),
    }
)


@metric("windowed_difference", unit="weighted tokens/s", table="windows", better="lower")
def windowed_difference() -> pl.Expr:
    """for each window, the sum over users of min(the most that a user received - what this one received, its demand -
    what it received), a second; the demand is what its requests lacked when the window began, of those that had not
    left, and what those due within ask for; not defined for fewer than two users with demand. Windows last
    service.window_s (unset: a tenth of what the middle one of a trace's cells takes, 60 s at most), begin a tenth of
    that apart from the first due on, and end within the run; requests without a user count in none"""
    return pl.col("difference")


@metric("service_jain", unit="index", table="windows", better="higher")
def service_jain() -> pl.Expr:
    """for each window, (sum x)^2 / (n * sum x^2) over the service x of the n users with demand in it (windows and
    demand as of windowed_difference); not defined for fewer than two of them, or where none was served"""
    return pl.col("jain")


@metric("service_ratio", unit="ratio", table="windows", better="higher")
def service_ratio() -> pl.Expr:
    """for each window, the least service of a user with demand in it / the most: 1 is even, 0 is somebody unserved"""
    return pl.col("ratio")


@metric("max_min_gap", unit="share", table="windows", better="lower")
def max_min_gap() -> pl.Expr:
    """for each window, the sum over users of |service - max-min fair share| / all service; the fair shares divide the
    same service so that nobody gets more than it has demand for, and nobody could get more without one who has less"""
    return pl.col("gap")


def window_length(tables: Sequence[pl.DataFrame], asked: float | None) -> float | None:
    """Seconds of a window for all cells of a trace, given their requests: as asked, or as long as VTC's authors took it
    where that is a tenth of what cells take or less, or else that tenth: of the median, so that one policy that keeps
    its users waiting does not set everybody's. Longer where they would be more than `MOST`. None where no time passes.
    """
    if asked is not None:
        return asked
    spans = [
        table.select(pl.max_horizontal(pl.col("ended").max(), pl.col("last_token").max()) - pl.col("due").min()).item()
        for table in tables
    ]
    known = [span for span in spans if span is not None]
    if not known:
        return None
    usual = min(LONGEST, round(median_high(known) / PARTS, 9))
    return max(usual, round(max(known) / MOST, 9)) or None


def windows(requests: pl.DataFrame, length: float | None) -> pl.DataFrame:
    """A row for each window of a cell, given its requests with their constants. None without users."""
    if length is None or requests.is_empty():
        return pl.DataFrame(schema=WINDOWS)
    start, end = requests.select(pl.col("cell_start").first(), pl.col("cell_end").first()).row(0)
    books = ledger(requests)
    if start is None or end is None or not books.names:
        return pl.DataFrame(schema=WINDOWS)
    parts = [pl.DataFrame(schema=WINDOWS)]
    for starts, received, demand in served_in_windows(books, start, end, length):
        parts.append(_judged(starts, received, demand, length))
    return pl.concat(parts)


def served_in_windows(
    books: Ledger, start: float, end: float, length: float
) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """Starts of windows, and of each window and user what it received and its demand: so many windows at a time."""
    stride = max(round(length / PARTS * NANOSECONDS), 1)
    bins = round((end - start) * NANOSECONDS) // stride
    count, users = bins - PARTS + 1, len(books.names)
    given = pl.concat([_binned(books.prompts, start, stride), _binned(books.tokens, start, stride, closed="right")])
    asked, withdrawn = _binned(books.asked, start, stride), _binned(books.withdrawn, start, stride)
    before = np.zeros((3, users))
    rows = max(CHUNK // users, 1)
    for first in range(0, count, rows):
        last = min(first + rows, count)
        got, want, gone = (
            np.cumsum(np.vstack([known[None], _rows(amounts, first, last + PARTS - 1, users)]), axis=0)
            for known, amounts in zip(before, (given.sort("bin"), asked, withdrawn), strict=True)
        )
        received = np.round(got[PARTS:] - got[:-PARTS], 6)
        lacked = want[PARTS:] - got[:-PARTS] - gone[:-PARTS]  # asked for by the window's end, less what came before it
        demand = np.maximum(np.round(lacked, 6), received)
        starts = start + np.arange(first, last) * stride / NANOSECONDS
        yield starts, received, demand
        before = np.stack([got[last - first], want[last - first], gone[last - first]])


def _binned(amounts: Amounts, start: float, stride: int, closed: str = "left") -> pl.DataFrame:
    """Amounts by bin and user. A token at a bin's end was computed in it: there it is closed at its right."""
    since = np.round((amounts.times - start) * NANOSECONDS).astype(np.int64)
    bins = np.maximum(-(-since // stride) - 1, 0) if closed == "right" else since // stride
    rows = pl.DataFrame({"bin": bins, "user": amounts.users, "amount": amounts.amounts})
    return rows.group_by("bin", "user").agg(pl.col("amount").sum()).sort("bin", "user")


def _rows(binned: pl.DataFrame, first: int, last: int, users: int) -> Numbers:
    """Amounts as a table, of the bins from `first` up to `last`."""
    low, high = np.searchsorted(binned["bin"].to_numpy(), [first, last])
    part = binned[int(low) : int(high)]
    cells = (part["bin"].to_numpy() - first) * users + part["user"].to_numpy()
    flat = np.bincount(cells, weights=part["amount"].to_numpy(), minlength=(last - first) * users)
    return np.asarray(flat.reshape(last - first, users), dtype=np.float64)


def _judged(starts: Numbers, received: Numbers, demand: Numbers, length: float) -> pl.DataFrame:
    wanted = demand > 0
    users, total = wanted.sum(axis=1), received.sum(axis=1)
    most = received.max(axis=1)
    least = np.where(wanted, received, np.inf).min(axis=1)
    short = np.minimum(most[:, None] - received, demand - received)
    apart = np.abs(received - fair_shares(demand, total)).sum(axis=1)
    several, served = users >= 2, (users >= 2) & (total > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = {
            "difference": (several, short.sum(axis=1) / length),
            "jain": (served, total**2 / (users * (received**2).sum(axis=1))),
            "ratio": (served, least / most),
            "gap": (served, apart / total),
        }
    known = [
        pl.Series(name, np.where(defined, values, np.nan)).fill_nan(None) for name, (defined, values) in columns.items()
    ]
    return pl.DataFrame(
        [pl.Series("start", starts), pl.Series("end", starts + length), pl.Series("users", users, pl.Int64), *known]
    ).cast(WINDOWS)


def fair_shares(demand: Numbers, total: Numbers) -> Numbers:
    """The max-min fair division of each row's total: all get equally much, but nobody more than its demand."""
    users = demand.shape[1]
    rising = np.sort(demand, axis=1)
    below = np.cumsum(rising, axis=1) - rising  # of those with less demand
    sharing = users - np.arange(users)
    filled = (below + sharing * rising < total[:, None]).sum(axis=1)  # whose demand is met with something left over
    place = np.minimum(filled, users - 1)
    row = np.arange(len(demand))
    level = (total - below[row, place]) / (users - place)
    return np.asarray(np.minimum(demand, level[:, None]))

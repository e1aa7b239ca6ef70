"""Whether anybody queued: who waited for longer than until the first step that could admit them.

Where nobody did, no policy chose between requests, and orders of admission cannot be told apart.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from replay.metrics.metric import metric
from replay.metrics.statistics import finite


def steps_waited(requests: pl.DataFrame, steps: pl.DataFrame, *, padded: bool) -> pl.Series:
    """For each request, the steps that might have admitted it and did not, from when it was taken in.

    Any step might, but in static and dynamic mode only one that admits somebody: in the others the mode's gate is
    closed. They are counted up to the first admission, or until the request ran out of time. Null for one that was
    neither admitted nor timed out.
    """
    opened = (steps.filter(pl.col("admitted") > 0) if padded else steps)["start"].sort().to_numpy()
    gave_up = pl.when(pl.col("status") == "timed_out").then(pl.col("ended"))
    until = requests.select(pl.coalesce("admitted", gave_up).cast(pl.Float64)).to_series()
    taken_in = requests["submitted"].cast(pl.Float64)
    known = (until.is_not_null() & taken_in.is_not_null()).to_numpy()
    starts, ends = taken_in.fill_null(0.0).to_numpy(), until.fill_null(0.0).to_numpy()
    waited = np.searchsorted(opened, ends) - np.searchsorted(opened, starts)
    if not padded:  # a policy that leaves the engine idle holds who waits back without a step
        waited = np.maximum(waited, ends > starts)
    return pl.Series("steps_waited", np.where(known, waited, -1), dtype=pl.Int64).replace(-1, None)


@metric("queued", unit="share", shape="one", count=pl.col("steps_waited").count())
def queued() -> pl.Expr:
    """requests that were left waiting by at least one step that could have admitted them (in static and dynamic mode
    one that admits, in continuous mode any) / requests that were admitted or timed out"""
    waited = pl.col("steps_waited")
    return finite((waited > 0).sum() / waited.count())

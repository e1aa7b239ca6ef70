"""The requests of a trace row by row: metrics of cells and of arms as columns that lie beside each other.

Rows are in order of arrival, whatever order a file had; NaN stands where a request has no value. It compares nothing.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.resampling import Counts, Floats, Mask, Users, block_starts, by_user, user_times


class Aligned:
    """`requests` are `Measured.requests` of one trace; those of runs side by side may be in one table. All draws of its
    rows follow from `seed`, and are made once."""

    def __init__(self, requests: pl.DataFrame, seed: int) -> None:
        self.seed = seed
        ordered = requests.sort("arrival", "row", "cell", nulls_last=True)
        self.rows = ordered.unique("row", keep="first", maintain_order=True)
        self._cells = {str(key[0]): table for key, table in ordered.partition_by("cell", as_dict=True).items()}
        self._columns: dict[tuple[str, str], Floats] = {}
        self.users = self._users()
        self._starts: Counts | None = None
        self._times: tuple[Counts, Floats] | None = None

    def has(self, metric: str) -> bool:
        """Whether it is a figure of a request."""
        return metric in self.rows.columns and self.rows.schema[metric].is_float()

    def cell(self, name: str, metric: str) -> Floats:
        """A metric of a cell."""
        if (name, metric) not in self._columns:
            own = self._cells.get(name, self.rows.clear()).select("row", metric)
            found = self.rows.select("row").join(own, on="row", how="left", maintain_order="left")[metric]
            self._columns[name, metric] = found.cast(pl.Float64).fill_null(np.nan).to_numpy()
        return self._columns[name, metric]

    def arm(self, arm: Arm, metric: str) -> Floats:
        """Each request's mean over the repeats in which it has the metric."""
        if len(arm.cells) == 1:
            return self.cell(arm.names[0], metric)
        repeats = np.stack([self.cell(name, metric) for name in arm.names])
        counts = (~np.isnan(repeats)).sum(axis=0)
        means: Floats = np.where(counts > 0, np.nansum(repeats, axis=0) / np.maximum(counts, 1), np.nan)
        return means

    def unfinished(self, arm: Arm) -> Floats:
        """As each request arrived, how many of those that ended some time had come and not ended, itself included."""
        arrivals, lasted = self.rows["arrival"].cast(pl.Float64).to_numpy(), self.arm(arm, "e2e")
        ends = np.sort((arrivals + lasted)[~np.isnan(lasted)])
        count: Floats = np.cumsum(~np.isnan(lasted)) - np.searchsorted(ends, arrivals, side="right").astype(np.float64)
        return np.where(np.isnan(lasted), np.nan, count)

    def mask(self, by: str | None, group: str | None) -> Mask:
        """The rows of a group of a breakdown; all of them where there is none."""
        if by is None:
            return np.ones(len(self.rows), np.bool_)
        return (self.rows[f"group_{by}"] == group).fill_null(value=False).to_numpy()

    def _users(self) -> Users | None:
        """Who each row's user is; None where there are too few to draw from."""
        names = self.rows["user"]
        many, nobody = names.drop_nulls().n_unique(), names.is_null().to_numpy()
        numbers = (names.rank("dense").fill_null(1).to_numpy() - 1).astype(np.int64)
        numbers[nobody] = many + np.arange(nobody.sum())
        return by_user(numbers, np.arange(many + int(nobody.sum())) < many)

    @property
    def starts(self) -> Counts:
        """Where the blocks of each draw begin."""
        if self._starts is None:
            self._starts = block_starts(len(self.rows), self.seed)
        return self._starts

    @property
    def times(self) -> tuple[Counts, Floats]:
        """The group of each user, and how often each draw has each group."""
        if self._times is None:
            assert self.users is not None, "asked of a trace with enough users"
            self._times = user_times(self.users, self.seed)
        return self._times

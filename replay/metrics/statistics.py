"""What is said of a set of values: how many, mean, ends and percentiles.

Every percentile is linear-interpolated, in tables, JSON, report and pictures alike: the data-frame default is another.
A statistic of no values is null.
"""

from __future__ import annotations

import polars as pl

from replay.errors import ExperimentError

PERCENTILES: tuple[float, ...] = (50, 90, 95, 99, 99.9)
"""Shown for every distribution."""


def percentile_name(percent: float) -> str:
    """`p50`, `p99.9`: two percentiles never share a name. ExperimentError outside 0 to 100."""
    if not 0 <= percent <= 100:
        raise ExperimentError(f"percentile {percent:g}: must lie between 0 and 100")
    return f"p{percent!r}".removesuffix(".0")


def percentile(values: pl.Expr, percent: float) -> pl.Expr:
    """The linear-interpolated percentile of the values that are not null."""
    return values.quantile(_fraction(percent), interpolation="linear").alias(percentile_name(percent))


def _fraction(percent: float) -> float:
    percentile_name(percent)
    return percent / 100


def distribution(values: pl.Expr) -> dict[str, pl.Expr]:
    """Each statistic of the values by its name; `n` counts those that are not null."""
    return {
        "n": values.count().cast(pl.Float64),
        "mean": values.mean(),
        "min": values.min(),
        **{percentile_name(percent): percentile(values, percent) for percent in PERCENTILES},
        "max": values.max(),
    }


DISTRIBUTION = ("n", "mean", "min", *map(percentile_name, PERCENTILES), "max")
"""The names of what `distribution` says."""


def finite(values: pl.Expr) -> pl.Expr:
    """The values, null where they are not a number: a division by zero is "not defined"."""
    return pl.when(values.is_finite()).then(values)

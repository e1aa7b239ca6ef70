"""Percentiles are linear-interpolated, under names that never collide, and a statistic of nothing is null."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.errors import ExperimentError
from replay.metrics.statistics import distribution, finite, percentile, percentile_name


def statistics(values: list[float | None]) -> dict[str, float | None]:
    frame = pl.DataFrame({"value": values}, schema={"value": pl.Float64})
    return frame.select(**distribution(pl.col("value"))).row(0, named=True)


def test_percentiles_interpolate_linearly() -> None:
    found = statistics([10, 20, 30, 40])
    assert found["p50"] == 25
    assert found["p99"] == pytest.approx(39.7)
    assert statistics([float(value) for value in range(1, 11)])["p90"] == pytest.approx(9.1)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_the_median_is_the_fiftieth_percentile(values: list[float]) -> None:
    assert statistics(list(values))["p50"] == pytest.approx(pl.Series(values).median())


def test_deep_percentiles_have_names_of_their_own() -> None:
    assert [percentile_name(percent) for percent in (99, 99.9, 99.99)] == ["p99", "p99.9", "p99.99"]
    assert {"p99", "p99.9"} <= set(statistics([1.0]))


@pytest.mark.parametrize("percent", [101, -1])
def test_a_percentile_outside_0_to_100_is_refused(percent: float) -> None:
    with pytest.raises(ExperimentError, match="between 0 and 100"):
        percentile(pl.col("value"), percent)


def test_nothing_has_no_statistics_but_its_count() -> None:
    for found in (statistics([]), statistics([None, None])):
        assert found.pop("n") == 0
        assert set(found.values()) == {None}


def test_nulls_are_not_zeros() -> None:
    found = statistics([None, 100, 300])
    assert (found["n"], found["mean"], found["p50"]) == (2, 200, 200)


def test_a_division_by_zero_is_not_defined() -> None:
    frame = pl.DataFrame({"a": [0.0, 1.0, 1.0], "b": [0.0, 0.0, 2.0]})
    assert frame.select(finite(pl.col("a") / pl.col("b"))).to_series().to_list() == [None, None, 0.5]

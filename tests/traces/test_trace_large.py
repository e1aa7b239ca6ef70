"""Files that are too large to be held: read in pieces, sorted a stretch after the other, the same rows as ever."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from replay.errors import TraceError
from replay.traces import reading, scratch, source
from replay.traces.formats import import_trace
from replay.traces.reading import read_trace
from replay.traces.writing import write_trace

AT_ONCE, LARGE = 100_000, 4 << 20
ROWS = 2 * AT_ONCE + 50_000


@pytest.fixture(scope="module", autouse=True)
def little_memory() -> Iterator[None]:
    """Files are too large from a twentieth of the size on: what is done with them is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "LARGE", LARGE)
        for module in (reading, scratch):
            patch.setattr(module, "AT_ONCE", AT_ONCE)
        yield


@pytest.fixture(scope="module")
def columns() -> pl.DataFrame:
    """Arrivals in whole microseconds, many of them equal and none in order; one row in a thousand has failed."""
    random = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "microseconds": random.integers(0, ROWS // 2, ROWS),
            "ContextTokens": np.arange(ROWS) % 5_000 + 1,
            "GeneratedTokens": (np.arange(ROWS) % 1_000 != 0) * 7,
        }
    )


@pytest.fixture(scope="module")
def week(columns, tmp_path_factory):
    file = tmp_path_factory.mktemp("large") / "week.csv"
    instant = (pl.lit(1_715_299_200_000_000) + pl.col("microseconds")).cast(pl.Datetime("us"))
    text = instant.dt.strftime("%Y-%m-%d %H:%M:%S%.6f+00:00").alias("TIMESTAMP")
    columns.select(text, "ContextTokens", "GeneratedTokens").write_csv(file)
    assert file.stat().st_size > LARGE
    return file


def test_a_large_file_is_the_trace_that_a_small_one_would_be(columns, week, tmp_path):
    trace = import_trace("azure", week)
    kept = columns.with_row_index("row").filter(pl.col("GeneratedTokens") > 0).sort("microseconds", maintain_order=True)
    first = kept["microseconds"].item(0)
    expected = kept.select(
        arrival=(pl.col("microseconds").cast(pl.Int64) - first) * 1_000,
        prompt_tokens=pl.col("ContextTokens").cast(pl.Int64),
        output_tokens=pl.col("GeneratedTokens").cast(pl.Int64),
        request_id=pl.col("row").cast(pl.String),
    )
    names = expected.columns
    assert trace.large
    assert trace.skipped == {"zero output tokens": ROWS // 1_000}
    assert_frame_equal(trace.rows.select(names).collect(), expected)
    write_trace(trace, tmp_path / "week.parquet")
    again = read_trace(tmp_path / "week.parquet")
    assert again.large
    assert_frame_equal(again.rows.select(names).collect(), expected)
    assert again.extent() == trace.extent()


def test_a_bad_value_in_a_large_file_is_named_with_its_row(week, tmp_path):
    with week.open("a") as file:
        file.write("2024-05-10 00:00:00,none,1\n")
    with pytest.raises(
        TraceError, match=rf"row {ROWS} \(counted from 0\), column 'ContextTokens': 'none', but must be"
    ):
        import_trace("azure", week)

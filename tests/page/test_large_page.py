"""The page of a run that fills all that a page may hold: how large it is, and that a browser opens it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from browsing import Open, report_of
from runs import cell_entry, request_row, span_row, step_row, write_manifest, write_tables

from replay.report.page.explorer_budget import BUDGET

REQUESTS, SLOTS = 10_000, 64
SPANS = BUDGET // REQUESTS  # of each request


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cell whose spans have all the digits that they can have: nothing in them repeats."""
    folder = tmp_path_factory.mktemp("large")
    cell = folder / "cells" / "continuous-fifo"
    write_tables(
        cell,
        [request_row(0, admitted=0.0, token_times=[0.1, 0.2])],
        [step_row(0, 0.0, 1.0)],
        [span_row(0, 0, "decode", 0.0, 0.1)],
    )
    draw = np.random.default_rng(1)
    rows = np.arange(REQUESTS)
    due = np.sort(draw.uniform(0, 1_000, REQUESTS))
    lengths = draw.exponential(0.1, (REQUESTS, SPANS))
    ends = due[:, None] + np.cumsum(lengths, axis=1)
    stamps = {"arrival": due, "due": due, "submitted": due, "admitted": due, "first_token": ends[:, 0]}
    last = dict.fromkeys(("last_token", "finished", "ended"), ends[:, -1])
    tokens = pl.Series("token_times", ends[:, [0, -1]].tolist())
    names = pl.DataFrame(
        {"row": rows, "request_id": rows.astype(str), "user": (rows % 50).astype(str), **stamps, **last}
    )
    _many(cell / "requests.parquet", names.with_columns(tokens, generated_tokens=pl.lit(2)))
    times = {"start": (ends - lengths).ravel(), "end": ends.ravel()}
    slots = draw.integers(0, SLOTS, REQUESTS * SPANS)
    _many(cell / "spans.parquet", pl.DataFrame({"row": rows.repeat(SPANS), "slot": slots, **times}))
    return report_of(write_manifest(folder, [cell_entry("continuous-fifo", slots=SLOTS)], rows=REQUESTS))


def _many(file: Path, columns: pl.DataFrame) -> None:
    """What `columns` do not say is as in the file's one row."""
    one = pl.read_parquet(file)
    said = [pl.col(name).cast(one.schema[name]) for name in columns.columns]
    rest = one.drop(columns.columns)
    columns.select(said).join(rest, how="cross").select(one.columns).write_parquet(file)


def test_a_page_that_is_full_is_under_ten_megabytes_and_opens(open_page: Open, report: Path) -> None:
    assert 4e6 < report.stat().st_size < 10e6
    page = open_page(report, wait=False)
    page.wait_for_selector(".explorer[data-drawn]", timeout=120_000)
    assert page.locator("table.arms").first.is_visible()

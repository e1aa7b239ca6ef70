"""What a killed or interrupted run left is read, and its counts add up to the rows of the trace."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from runs import cell_entry, request_row, write_manifest, write_tables

from replay.errors import OutputError
from replay.metrics import measure
from replay.metrics.rates import STATUSES
from replay.results import read_run


def counts(summary: pl.DataFrame, cell: str) -> dict[str, float]:
    lines = summary.filter(cell=cell, by="all", statistic="count")
    return {
        name: value for name, value in lines.select("metric", "value").iter_rows() if name in (*STATUSES, "requests")
    }


def test_parts_are_read_and_the_rest_is_unfinished(tmp_path: Path) -> None:
    cell = tmp_path / "cells" / "continuous-fifo"
    for part in range(3):
        rows = [request_row(row, token_times=[row + 0.1]) for row in range(10 * part, 10 * part + 10)]
        write_tables(cell, rows, part=part)
    (cell / "requests.part-0003.parquet").write_bytes(b"PAR1 and no more")  # killed while writing
    run = read_run(write_manifest(tmp_path, [cell_entry("continuous-fifo", status="running")], rows=100))
    assert run.partial
    assert run.cells[0].partial
    found = counts(measure(run).summary, "continuous-fifo")
    assert (found["requests"], found["completed"], found["unfinished"]) == (100, 30, 70)
    assert sum(found[status] for status in STATUSES) == 100


def test_a_partial_cell_knows_from_the_others_who_is_missing(tmp_path: Path) -> None:
    rows = [request_row(row, user="ana" if row else "ben", token_times=[0.1]) for row in range(4)]
    write_tables(tmp_path / "cells" / "continuous-fifo", rows)
    write_tables(tmp_path / "cells" / "continuous-sjf", rows[1:3], part=0)
    cells = [cell_entry("continuous-fifo"), cell_entry("continuous-sjf", status="interrupted")]
    summary = measure(read_run(write_manifest(tmp_path, cells, rows=4, status="interrupted"))).summary
    assert counts(summary, "continuous-sjf")["unfinished"] == 2
    users = summary.filter(cell="continuous-sjf", by="user", metric="requests")
    assert dict(users.select("group", "value").iter_rows()) == {"ana": 3, "ben": 1}


def test_a_cell_without_rows_is_left_out(tmp_path: Path) -> None:
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, token_times=[0.1])])
    cells = [cell_entry("continuous-fifo"), cell_entry("continuous-sjf", status="pending")]
    found = measure(read_run(write_manifest(tmp_path, cells, rows=1)))
    assert found.summary["cell"].unique().to_list() == ["continuous-fifo"]


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"no manifest\.json"):
        read_run(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": [{}]}', '{"cells": [{"cell": "a"}]}'])
def test_a_broken_manifest_is_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(OutputError, match=r"manifest\.json"):
        read_run(tmp_path)


def test_a_broken_table_is_a_sentence(tmp_path: Path) -> None:
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, token_times=[0.1])])
    file = tmp_path / "cells" / "continuous-fifo" / "requests.parquet"
    file.write_bytes(b"no parquet")
    run = read_run(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1))
    with pytest.raises(OutputError, match=r"requests\.parquet: not a readable Parquet file"):
        measure(run)
    pl.DataFrame({"row": [1]}).write_parquet(file)
    with pytest.raises(OutputError, match="lacks the column 'request_id'"):
        measure(run)

"""The files of a report: whole, strict, the same each time, and honest about what went wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from runs import MODES, cell_entry, request_row, simulated_run, static_batch, write_manifest, write_tables

from replay.errors import OutputError
from replay.metrics.rates import STATUSES
from replay.report import write_report


def refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is no JSON")


def strict(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "summary.json").read_text(), parse_constant=refuse)
    return content


def all_failed(folder: Path) -> Path:
    """Twenty requests to an engine that answers none."""
    rows = [request_row(row, status="failed", reason="no connection", ended=0.1, user="ana") for row in range(20)]
    for policy in ("fifo", "sjf"):
        write_tables(folder / "cells" / f"continuous-{policy}", rows)
    return write_manifest(folder, [cell_entry("continuous-fifo"), cell_entry("continuous-sjf")], rows=20)


def test_a_run_that_failed_wholly_says_so_first_and_shows_no_zeros(tmp_path: Path) -> None:
    report = write_report(all_failed(tmp_path), plots=False)
    assert report.verdict[0].startswith("0 of 40 requests completed (40 failed; most often because: no connection)")
    assert (report.requests, report.completed) == (40, 0)
    cell = strict(tmp_path)["cells"][0]["metrics"]["all"]["all"]
    assert cell["ttft"]["p50"] is None
    assert cell["ttft"]["n"] == 0
    assert cell["failed"] == {"count": 20}
    assert isinstance(cell["failed"]["count"], int)
    parquet = pl.read_parquet(tmp_path / "summary.parquet")
    line = parquet.filter(metric="ttft", statistic="p50", by="all", cell="continuous-fifo")
    assert line["value"].to_list() == [None]
    csv = pl.read_csv(tmp_path / "summary.csv").filter(metric="ttft", statistic="p50", by="all", cell="continuous-fifo")
    assert csv["value"].to_list() == [None]
    assert "| continuous | fifo | – |" in (tmp_path / "comparison.md").read_text()  # noqa: RUF001  # the dash


def test_one_failure_is_counted_and_told(tmp_path: Path) -> None:
    rows = [request_row(row, token_times=[0.1, 0.2]) for row in range(19)]
    rows.append(request_row(19, status="failed", reason="the server said: out of memory", ended=0.3))
    write_tables(tmp_path / "cells" / "continuous-fifo", rows)
    report = write_report(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=20), plots=False)
    assert report.verdict[:2] == [
        "fifo in continuous: mean TTFT 100 ms, 127 output tokens/s. Nothing was run to compare it with.",
        "19 of 20 requests completed (1 failed; most often because: the server said: out of memory).",
    ]
    cell = strict(tmp_path)["cells"][0]["metrics"]["all"]["all"]
    assert sum(cell[status]["count"] for status in STATUSES) == cell["requests"]["count"] == 20


def test_one_user_with_one_token_leaves_strict_files(tmp_path: Path) -> None:
    rows = [request_row(0, user="ana", token_times=[0.1], admitted=0.0)]
    write_tables(tmp_path / "cells" / "continuous-fifo", rows)
    write_report(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1), plots=False)
    cell = strict(tmp_path)["cells"][0]["metrics"]
    assert cell["user"]["ana"]["tpot"]["mean"] is None
    assert cell["user"]["ana"]["requests"]["count"] == 1
    assert not pl.read_parquet(tmp_path / "summary.parquet")["value"].is_nan().any()


def test_the_same_number_stands_in_every_file(tmp_path: Path) -> None:
    report = write_report(static_batch(tmp_path), plots=False)
    assert strict(tmp_path)["cells"][0]["metrics"]["all"]["all"]["output_throughput"]["value"] == pytest.approx(140)
    assert "| 140 |" in (tmp_path / "comparison.md").read_text()
    assert " 140 " in report.table
    csv = pl.read_csv(tmp_path / "summary.csv").filter(metric="output_throughput", by="all")
    assert csv["value"].item() == pytest.approx(140)


def test_two_reports_of_one_run_are_the_same_bytes(tmp_path: Path) -> None:
    folder = simulated_run(tmp_path / "run", policies=("fifo", "sjf"), count=30)
    write_report(folder, plots=False)
    names = ("summary.parquet", "summary.csv", "summary.json", "comparison.md")
    first = {name: (folder / name).read_bytes() for name in names}
    write_report(folder, plots=False)
    assert {name: (folder / name).read_bytes() for name in names} == first
    assert not list(folder.glob(".*"))  # no drafts are left behind


def test_the_report_tells_what_was_run(tmp_path: Path) -> None:
    extent = {"rows": 40, "span": 3.25}
    trace = {
        "name": "sample",
        "rows": 30,
        "span_s": 2.5,
        "skipped": {"zero output tokens": 2},
        "notes": ["arrivals without a zone are UTC"],
        "history": ["imported as azure from chat.csv"],
        "transforms": [
            {"transform": "limit", "argument": 30, "before": extent, "after": {"rows": 30, "span": 2.5}},
            {
                "transform": "derive_priority",
                "argument": {"users": {"ada": 2}, "default": 0},
                "before": extent,
                "after": extent,
                "details": ["derived priority 0: 28 requests, 2: 2 requests"],
            },
        ],
    }
    folder = simulated_run(
        tmp_path / "run",
        policies=("fifo",),
        count=30,
        traces=[trace],
        predictor="oracle",
        priority_order="smaller-first",
    )
    write_report(folder, plots=False)
    text = (folder / "comparison.md").read_text()
    for part in (
        "trace **sample**, 30 requests, arriving over 2.50 s, 2 skipped (zero output tokens)",
        "imported as azure from chat.csv",
        "transform limit = 30: rows 40 → 30, span 3.25 → 2.5",
        "transform derive_priority = { users = { ada = 2 }, default = 0 }: derived priority 0: 28 requests",
        "arrivals without a zone are UTC",
        "SIMULATED",
        "`oracle`, which knows the true lengths: an upper bound",
        "a smaller number is more urgent",
        "goals: TTFT ≤ 500 ms, TPOT ≤ 50.0 ms",
        "delivered TTFT p50",
    ):
        assert part in text, part


def test_delivered_first_tokens_are_shown_only_beside_padded_modes(tmp_path: Path) -> None:
    folder = simulated_run(tmp_path / "run", policies=("fifo",), modes={"continuous": MODES["continuous"]}, count=10)
    write_report(folder, plots=False)
    assert "delivered TTFT p50" not in (folder / "comparison.md").read_text()


def test_a_partial_run_says_so(tmp_path: Path) -> None:
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, token_times=[0.1])], part=0)
    cells = [cell_entry("continuous-fifo", status="interrupted"), cell_entry("continuous-sjf", status="pending")]
    report = write_report(write_manifest(tmp_path, cells, rows=3, status="interrupted"), plots=False)
    assert report.verdict[0].startswith("1 of 3 requests completed (2 unfinished")
    assert report.verdict[1] == "This report is partial: the run is interrupted, and 0 of 2 cells ran to the end."
    assert strict(tmp_path)["partial"] is True


def test_a_run_without_any_row_has_a_report(tmp_path: Path) -> None:
    cells = [cell_entry("continuous-fifo", status="failed", error="no such model: nowhere")]
    report = write_report(write_manifest(tmp_path, cells, rows=3, status="failed"))
    assert report.verdict[:2] == [
        "No cell left any row: there is nothing to report.",
        "Cell continuous-fifo failed: no such model: nowhere.",
    ]
    assert report.problems == []
    assert strict(tmp_path)["cells"][0]["metrics"] is None


def test_invalid_cells_are_named(tmp_path: Path) -> None:
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, token_times=[0.1])])
    entry = cell_entry("continuous-fifo", valid=False, invalid_reason="lag p99 is 9.0 ms, over the limit of 5 ms")
    report = write_report(write_manifest(tmp_path, [entry], rows=1), plots=False)
    said = "continuous-fifo is invalid: lag p99 is 9.0 ms, over the limit of 5 ms"
    assert any(sentence.startswith(said) for sentence in report.verdict)
    assert "fifo (invalid)" in (tmp_path / "comparison.md").read_text()


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    folder = static_batch(tmp_path)
    (folder / "summary.csv").mkdir()
    with pytest.raises(OutputError, match=r"summary\.csv: cannot be written"):
        write_report(folder, plots=False)


def test_engines_are_told_in_words(tmp_path: Path) -> None:
    greedy, drawn = ({"temperature": heat, "top_k": top, "top_p": 1.0} for heat, top in ((0.0, None), (0.7, 40)))
    exact = {"linears": "native", "linears_are": "float32, packed", "sampling": greedy, "cuda_graphs": None}
    engines = [
        {"kind": "torch", "simulated": False, "details": exact | {"agreement": 1.0}},
        {"kind": "torch", "simulated": False, "details": {"model": "tiny", "sampling": drawn, "agreement": 63 / 64}},
        {"kind": "simulated", "simulated": True, "details": {"cost": {"fixed": 0.015, "context": 1.2e-6}}},
    ]
    write_tables(tmp_path / "cells" / "continuous-fifo", [request_row(0, token_times=[0.1])])
    write_report(write_manifest(tmp_path, [cell_entry("continuous-fifo")], rows=1, engines=engines), plots=False)
    told = (tmp_path / "comparison.md").read_text().splitlines()
    modules = "its likeliest next token is that of the model's own modules for"
    assert [line for line in told if line.startswith("- engine: ")] == [
        "- engine: torch; linears native; each token the likeliest; linears: float32, packed; "
        f"{modules} 100 % of tokens probed",
        "- engine: torch; model tiny; tokens drawn at temperature 0.7, top_k 40, top_p 1.0; "
        f"{modules} 98.4 % of tokens probed",
        "- engine: SIMULATED, a cost model on a virtual clock; a step, ms: fixed 15, context 0.0012",
    ]

"""The table of the settings in force: once where they are the same, by place where they differ."""

from __future__ import annotations

from pathlib import Path

from runs import cell_entry, request_row, write_manifest, write_tables

from replay.report.findings import find
from replay.report.in_force import settings_in_force
from replay.results import read_run


def test_what_is_the_same_in_all_cells_has_one_row_and_what_differs_says_where(tmp_path: Path) -> None:
    engine = {"kv_blocks": 64, "price_per_hour": None, "cost": {"fixed_ms": 15.0}}
    cells = [
        cell_entry("static-fifo", settings={"engine": engine, "mode": {"batch_size": 8}, "policy": {}}),
        cell_entry("continuous-fifo", variant="max_running=8", settings={"engine": engine, "mode": {"max_running": 8}}),
        cell_entry(
            "continuous-sjf-16",
            variant="max_running=16",
            settings={"engine": engine, "mode": {"max_running": 16}, "policy": {"ageing": 2.0}},
        ),
    ]
    for cell in cells:
        write_tables(tmp_path / "cells" / cell["cell"], [request_row(0, token_times=[0.1])])
    write_manifest(tmp_path, cells)
    rows = settings_in_force(find(read_run(tmp_path))).splitlines()[2:]
    assert rows == [
        "| `engine.kv_blocks` | `64` | everywhere |",
        "| `engine.price_per_hour` | not set | everywhere |",
        "| `engine.cost.fixed_ms` | `15.0` | everywhere |",
        "| `modes.static.batch_size` | `8` | everywhere |",
        "| `modes.continuous.max_running` | `8` | continuous (max_running=8) |",
        "| `modes.continuous.max_running` | `16` | continuous (max_running=16) |",
        "| `policies.sjf.ageing` | `2.0` | everywhere |",
    ]

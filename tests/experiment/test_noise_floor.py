"""The key `noise_floor`: the base policy once more in every mode and setting, last, and what a report makes of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import cell_entry, request_row, step_row, write_manifest, write_tables

from replay.errors import ExperimentError
from replay.experiment.grid import cells
from replay.experiment.loading import Experiment, load_experiment
from replay.report import write_report

SAMPLE = str(Path("traces/sample.parquet").resolve())
MODES = {"static": {}, "continuous": {"max_running": [4, 8]}}


def experiment(**fields: Any) -> Experiment:
    known = {"traces": [SAMPLE], "modes": MODES, "policies": {"sjf": {}, "fifo": {}}, "noise_floor": True}
    return load_experiment(known | fields, "here.toml")


def names(found: Experiment) -> list[str]:
    return [cell.name for cell in cells(found, ["sample"])]


def test_fifo_is_run_once_more_in_every_mode_and_setting_at_the_end() -> None:
    found = names(experiment())
    assert found[:6] == names(experiment(noise_floor=False))
    assert found[6:] == ["static-fifo-again", "continuous-fifo-max_running=4-again",
                         "continuous-fifo-max_running=8-again"]  # fmt: skip
    assert [cell.repeat for cell in cells(experiment(), ["sample"])][6:] == [1, 1, 1]


def test_without_fifo_it_is_the_first_policy_and_repeats_get_one_more() -> None:
    found = names(experiment(modes={"static": {}}, policies={"sjf": {}, "fair": {}}, repeats=2))
    assert found == [
        "static-sjf-r1", "static-fair-r1", "static-sjf-r2", "static-fair-r2", "static-sjf-again",
    ]  # fmt: skip


def test_it_is_yes_or_no() -> None:
    with pytest.raises(ExperimentError, match="noise_floor"):
        experiment(noise_floor="yes")
    with pytest.raises(ExperimentError, match="noise_floor"):
        load_experiment({"traces": [SAMPLE], "noise_flor": True}, "here.toml")


def test_on_a_virtual_clock_it_is_said_to_be_in_vain() -> None:
    told = [text for text in experiment(engine={"kind": "simulated"}).warnings if "noise" in text]
    assert told == ["a simulated replay repeats exactly: noise_floor = true measures no noise"]
    assert not any("noise" in text for text in experiment().warnings)


def test_a_dry_run_shows_the_cells_and_counts_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "replay", "run", "--trace", SAMPLE, "--dry-run", "--mode", "static"]
    command += ["--policy", "fifo", "--policy", "sjf", "--set", "noise_floor=true", "--set", "engine.kind=simulated"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "static-fifo-again" in done.stdout + done.stderr
    assert "3 cells" in done.stdout + done.stderr


def test_what_two_runs_of_a_cell_differ_by_is_claimed_of_nobody(tmp_path: Path) -> None:
    """fifo's mean TTFT is 500 and 520 ms; sjf's is 505, and fair's 300."""
    entries = []
    for name, latency, repeat in (("fifo", 0.50, 0), ("fifo", 0.52, 1), ("sjf", 0.505, 0), ("fair", 0.3, 0)):
        rows = [
            request_row(row, arrival=float(row), token_times=[row + latency + 0.001 * (row % 3)]) for row in range(40)
        ]
        steps = [step_row(0, 0.0, 0.1, admitted=1, waiting=3)]
        cell = f"continuous-{name}{'-again' if repeat else ''}"
        write_tables(tmp_path / "cells" / cell, rows, steps)
        entries.append(cell_entry(cell, repeat=repeat))
    report = write_report(write_manifest(tmp_path, entries, rows=40), plots=False)
    told = "\n".join(report.verdict)
    assert "no difference seen on average for sjf" in told
    assert "Differences no larger than those between two runs of one cell are not claimed; the largest are" in told
    assert "20.0 ms (3.9 %) in mean TTFT, of continuous, fifo and 20.0 ms (3.9 %) in mean end-to-end time" in told
    assert "± 20.0 (within noise)" in (tmp_path / "comparison.md").read_text()

"""`replay run` on traces with sessions and without: what it says beforehand, and which loop it takes."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from command import replay
from test_run import SAMPLE, SIMULATED, write_trace


def conversation(folder: Path) -> Path:
    """Two turns that arrive together, with 90 s of thought between them."""
    rows = [
        {
            "arrival_s": 0,
            "prompt_tokens": 8,
            "output_tokens": 2,
            "session": "s",
            "turn": turn,
            "think_time_ms": 90_000.0,
        }
        for turn in (1, 2)
    ]
    return write_trace(folder / "chat.parquet", rows)


def test_what_is_said_beforehand_reckons_with_think_times(tmp_path: Path) -> None:
    arguments = ["run", "--trace", conversation(tmp_path), "--policy", "fifo", "--mode", "continuous", "--dry-run"]
    closed = replay(*arguments).stderr
    assert "1 session with 2 requests, in a closed loop\n" in closed
    assert "1 cell, in real time: at least 1.5 min;" in closed
    opened = replay(*arguments, "--set", "open_loop=true").stderr
    assert "in an open loop: no turn waits for the one before, and 1 turn will come at the same instant" in opened
    assert "at least" not in opened


def test_a_long_trace_is_told_in_hours_and_its_counts_with_commas(tmp_path: Path) -> None:
    rows = [{"arrival_s": at, "prompt_tokens": 8, "output_tokens": out} for at, out in ((0, 2), (18_000, 1), (1, 0))]
    path = write_trace(tmp_path / "long.parquet", rows)
    said = replay("run", "--trace", path, "--policy", "fifo", "--mode", "continuous", "--dry-run").stderr
    assert "long.parquet: 2 requests over 18,000.0 s, 16 prompt and 3 output tokens\n  skipped 1 row: zero" in said
    assert "1 cell, in real time: at least 5.0 h;" in said
    trace = "traces/sample.parquet"
    short = replay("run", "--trace", trace, "--policy", "fifo", "--mode", "continuous", "--dry-run").stderr
    assert "1 cell, in real time: at least 3.50 s;" in short


def test_an_open_loop_on_request(tmp_path: Path) -> None:
    arguments = ["run", "--trace", conversation(tmp_path), *SIMULATED, "--policy", "fifo", "--mode", "continuous"]
    dues = {}
    for name, more in {"closed": [], "open": ["--set", "open_loop=true"]}.items():
        done = replay(*arguments, *more, "--no-plots", "--output", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert f"sessions: {name} loop" in (tmp_path / name / "comparison.md").read_text()
        manifest = json.loads((tmp_path / name / "manifest.json").read_text())
        assert manifest["open_loop"] is (name == "open")
        rows = pl.read_parquet(tmp_path / name / "cells" / "continuous-fifo" / "requests.parquet").sort("row")
        dues[name] = (rows["due"] - rows["finished"].shift().fill_null(0)).to_list()
    assert dues["closed"] == [0.0, 90.0]
    assert dues["open"][1] < 0, "it came before the first was answered"
    assert "open_loop = true" in (tmp_path / "open" / "experiment.toml").read_text()


def test_an_open_loop_of_nothing_is_remarked_upon() -> None:
    arguments = ["run", "--trace", SAMPLE, *SIMULATED, "--dry-run"]
    warning = "warning: open_loop is not used: no trace has sessions"
    assert warning in replay(*arguments, "--set", "open_loop=true").stderr
    assert "open_loop" not in replay(*arguments).stderr


def test_an_open_loop_is_true_or_false() -> None:
    done = replay("run", "--trace", SAMPLE, *SIMULATED, "--set", "open_loop=sometimes", "--dry-run")
    assert done.returncode == 2
    assert "open_loop" in done.stderr
    assert "Traceback" not in done.stderr

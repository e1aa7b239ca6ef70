"""The command as it is typed: real files, exit statuses that tell the truth, a real process where that matters."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import replay

SAMPLE = Path("traces/sample.parquet").resolve()
SIMULATED = ["--set", "engine.kind=simulated"]


def process(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `replay` to its end in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "replay", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
        timeout=300,
        check=False,
    )


def strict(text: str) -> Any:
    """JSON with NaN and Infinity refused."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def write_trace(file: Path, rows: list[dict[str, Any]]) -> Path:
    pl.DataFrame(rows).write_parquet(file)
    return file


def test_a_simulated_grid_leaves_everything_the_report_needs(tmp_path: Path) -> None:
    done = process("run", "--trace", SAMPLE, *SIMULATED, "--output", tmp_path / "run", "--no-plots")
    assert done.returncode == 0, done.stderr
    manifest = strict((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert len(manifest["cells"]) == 15
    assert all(cell["status"] == "complete" and cell["valid"] and cell["simulated"] for cell in manifest["cells"])
    cell = tmp_path / "run" / "cells" / "continuous-fifo"
    assert sorted(file.name for file in cell.iterdir()) == ["requests.parquet", "spans.parquet", "steps.parquet"]
    for name in ("experiment.toml", "comparison.md", "summary.parquet", "summary.csv", "summary.json"):
        assert (tmp_path / "run" / name).stat().st_size > 0, name
    strict((tmp_path / "run" / "summary.json").read_text())
    assert "simulated" in (tmp_path / "run" / "comparison.md").read_text().lower()
    assert "hybrid" in done.stdout
    assert "15/15" in done.stderr


def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    rows = [{"arrival_s": 0.0, "prompt_tokens": 5, "output_tokens": 3} for _ in range(10)]
    trace = write_trace(tmp_path / "ties.parquet", rows)
    policies = [word for name in ("fifo", "sjf", "fair") for word in ("--policy", name)]
    contents = []
    for seed in ("1", "2"):
        run = tmp_path / f"run{seed}"
        done = process(
            "run", "--trace", trace, *SIMULATED, "--output", run, "--no-plots", *policies,
            PYTHONHASHSEED=seed, OMP_NUM_THREADS=seed, POLARS_MAX_THREADS=seed,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        files = sorted(file for file in run.rglob("*") if file.is_file() and file.name != "manifest.json")
        contents.append({str(file.relative_to(run)): file.read_bytes() for file in files})
        served = pl.read_parquet(run / "cells" / "continuous-sjf" / "requests.parquet").sort("row")["admitted"]
        assert served.is_sorted(), "ties are served in row order"
    assert contents[0].keys() == contents[1].keys()
    for name, content in contents[0].items():
        again = contents[1][name]
        if name in ("comparison.md", "report.html"):  # which say when it was run
            content, again = (re.sub(rb"\d{4}-\d\d-\d\dT[\d:]+", b"", text) for text in (content, again))
        assert content == again, name


def test_a_run_never_overwrites_another(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = ("run", "--trace", SAMPLE, *SIMULATED, "--policy", "fifo", "--no-plots", "--limit", "5")
    assert replay(*arguments, "--output", run).returncode == 0
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    again = replay(*arguments, "--output", run)
    assert again.returncode == 1
    assert "a run never overwrites another" in again.stderr
    assert "Traceback" not in again.stderr
    assert {file: file.read_bytes() for file in run.rglob("*") if file.is_file()} == before
    # Without a folder of their own, two runs of one second get two.
    for _ in range(2):
        assert replay(*arguments, cwd=tmp_path).returncode == 0
    assert len(list((tmp_path / "outputs").iterdir())) == 2


@pytest.mark.parametrize(
    ("output", "sentence"),
    [("taken", "is a file"), ("taken/below", "no results can be written there")],
)
def test_a_place_that_cannot_hold_results_is_refused_before_anything_runs(
    tmp_path: Path, output: str, sentence: str
) -> None:
    (tmp_path / "taken").write_text("mine")
    done = replay("run", "--trace", SAMPLE, *SIMULATED, "--output", tmp_path / output)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert "/15]" not in done.stderr
    assert (tmp_path / "taken").read_text() == "mine"


def test_wrong_input_is_a_sentence_each_and_leaves_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty.parquet"
    pl.DataFrame(schema={"arrival_s": pl.Float64, "prompt_tokens": pl.Int64, "output_tokens": pl.Int64}).write_parquet(
        empty
    )
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 this is no parquet")
    bad = tmp_path / "bad.toml"
    bad.write_text('traces = ["empty.parquet"]\nrepeets = 3\n')
    for arguments, status, sentence in (
        (("run", "--trace", empty), 1, "no requests"),
        (("run", "--trace", broken), 1, "broken.parquet"),
        (("run", bad), 2, "did you mean 'repeats'?"),
        (("run", tmp_path / "no.toml"), 2, "no.toml: cannot be read"),
        (("run", "--trace", SAMPLE, "--policy", "fifi"), 2, "did you mean 'fifo'?"),
        (("run", "--trace", SAMPLE, "--set", "engine.model=tinny"), 2, "did you mean 'tiny'?"),
        (("run", "--trace", broken, "--trace", empty), 1, "empty.parquet"),
        (("run", SAMPLE), 2, f"is a Parquet file, not an experiment; replay it with --trace {SAMPLE}"),
        (("run", "--trace", SAMPLE, "--output", tmp_path, "--dry-run"), 1, "holds files already"),
        (("run",), 2, "name an EXPERIMENT file"),
        (("run", "--set", "traces=5"), 2, "traces: input should be a valid array, not 5"),
        (("run", "--trace", SAMPLE, "--set", "transforms=3", "--limit", "3"), 2, "transforms: input should be"),
        (("rnu",), 2, "did you mean 'run'?"),
        (("report", tmp_path), 1, "manifest.json"),
    ):
        done = replay(*arguments, cwd=tmp_path)
        assert done.returncode == status, (arguments, done.stderr)
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
    assert sorted(file.name for file in tmp_path.iterdir() if file.name != "outputs") == [
        "bad.toml",
        "broken.parquet",
        "empty.parquet",
    ]
    assert not list((tmp_path / "outputs").glob("*"))


def test_a_trace_without_rows_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    trace, out = tmp_path / "empty.parquet", tmp_path / "out"
    schema = {"arrival_s": pl.Float64, "prompt_tokens": pl.Int64, "output_tokens": pl.Int64}
    pl.DataFrame(schema=schema).write_parquet(trace)
    done = replay("run", "--trace", trace, *SIMULATED, "--output", out)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert done.stderr == f"replay: {trace}: the trace holds no requests\n"
    assert not out.exists()


def test_a_run_in_which_nothing_completed_has_failed(tmp_path: Path) -> None:
    done = replay(
        "run", "--trace", SAMPLE, *SIMULATED, "--policy", "fifo", "--mode", "continuous", "--output", tmp_path / "run",
        "--no-plots", "--set", "engine.kv_blocks=1", "--set", "engine.block_size=1",
    )  # fmt: skip
    assert done.returncode == 1
    assert "0 of 96 requests completed" in done.stderr
    summary = pl.read_parquet(tmp_path / "run" / "summary.parquet")
    ttft = summary.filter((pl.col("metric") == "ttft") & (pl.col("by") == "all") & (pl.col("statistic") == "p50"))
    assert ttft["value"].to_list() == [None]


def test_strict_ends_with_1_when_one_request_did_not_complete(tmp_path: Path) -> None:
    rows = [{"arrival_s": float(row), "prompt_tokens": 5 if row else 9999, "output_tokens": 1} for row in range(20)]
    trace = write_trace(tmp_path / "one.parquet", rows)
    arguments = ("run", "--trace", trace, *SIMULATED, "--policy", "fifo", "--mode", "continuous", "--no-plots")
    arguments += ("--set", "engine.kv_blocks=10")
    lenient = replay(*arguments, "--output", tmp_path / "a")
    assert lenient.returncode == 0
    assert "19 of 20 requests completed" in lenient.stderr
    assert replay(*arguments, "--output", tmp_path / "b", "--strict").returncode == 1


def test_an_option_of_one_policy_leaves_the_others_in(tmp_path: Path) -> None:
    done = replay("run", "--trace", SAMPLE, "--mode", "static", "--set", "policies.hybrid.band_s=5.0", "--dry-run")
    assert len(done.stdout.split()) == 5
    wrong = replay("run", "--trace", SAMPLE, "--set", "policies.hybird.band_s=5.0", "--dry-run")
    assert "--set policies.hybird.band_s=5.0: policies.hybird: there is no policy of this name" in wrong.stderr
    long = replay("run", "--trace", SAMPLE, "--dry-run", "--output", tmp_path / ("x" * 300))
    assert long.returncode == 1
    assert "Traceback" not in long.stderr


def test_requests_that_cannot_fit_are_said_before_anything_runs(tmp_path: Path) -> None:
    done = replay("run", "--trace", SAMPLE, *SIMULATED, "--set", "engine.kv_blocks=4", "--dry-run", cwd=tmp_path)
    assert (
        "requests are larger than the whole KV pool of 64 tokens (4 blocks of 16) and will be rejected" in done.stderr
    )


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("@policy('mine')\nclass Mine: ...", "line 1: name 'policy' is not defined"),
        ("def", "line 1: invalid syntax"),
        (
            "from replay.scheduler import *\n@policy('fifo')\n@dataclass\nclass A(Ordered):\n  'A.'",
            "line 3: name 'dataclass'",
        ),
        (
            "from dataclasses import dataclass\nfrom replay.scheduler import *\n"
            "@policy('fifo')\n@dataclass\nclass A(Ordered):\n  'A.'",
            "two policy entries are named 'fifo'",
        ),
        (
            "from replay.scheduler import *\n@policy('bare')\nclass A(Ordered):\n  'A.'",
            "put @dataclass between @policy",
        ),
        (
            "from dataclasses import dataclass\nfrom replay.scheduler import *\n"
            "@policy('bare')\n@dataclass\nclass A(Ordered): ...",
            "needs a docstring that says its rule",
        ),
    ],
)
def test_a_policy_file_with_a_fault_is_named_with_its_line(tmp_path: Path, source: str, sentence: str) -> None:
    copy = tmp_path / "policies"
    shutil.copytree(Path("policies"), copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "mine.py").write_text(source)
    done = process("policies", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert "mine.py, line" in done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dry_run_prints_the_cells_and_runs_nothing(tmp_path: Path) -> None:
    done = replay("run", "--trace", SAMPLE, "--mode", "static", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.split() == [f"static-{policy}" for policy in ("fifo", "sjf", "priority", "fair", "hybrid")]
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(
    ("number", "times", "status"), [(signal.SIGINT, 1, 130), (signal.SIGINT, 2, 130), (signal.SIGTERM, 1, 143)]
)
def test_a_stopped_run_keeps_what_was_measured(tmp_path: Path, number: signal.Signals, times: int, status: int) -> None:
    rows = [{"arrival_ms": 30.0 * row, "prompt_tokens": 5, "output_tokens": 2} for row in range(2000)]
    trace = write_trace(tmp_path / "minute.parquet", rows)
    run = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "replay", "run", "--trace", str(trace), "--policy", "fifo", "--mode", "continuous",
         "--set", "engine.threads=1", "--output", str(run)],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        parts = run / "cells" / "continuous-fifo"
        while not list(parts.glob("requests.part-*")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for _ in range(times):
            process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == status
    assert "Traceback" not in errors
    assert output == ""
    assert strict((run / "manifest.json").read_text())["status"] == "interrupted"
    kept = pl.read_parquet(parts / "requests.parquet")
    assert kept.height == 2000
    counts = dict(kept["status"].value_counts().iter_rows())
    assert counts.keys() == {"completed", "unfinished"}
    assert counts["completed"] >= 1
    assert sorted(file.name for file in parts.iterdir()) == ["requests.parquet", "spans.parquet", "steps.parquet"]
    report = replay("report", run, "--no-plots")
    assert report.returncode == 0, report.stderr
    text = (run / "comparison.md").read_text().lower()
    assert "partial" in text or "interrupted" in text


def test_a_run_that_is_stopped_while_its_engine_is_built_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "replay", "run", "--trace", str(SAMPLE), "--set", "engine.model=smollm2-360m",
         "--output", str(run)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        while "building the engine" not in (line := process.stderr.readline()):
            assert line, "it ended before it built an engine"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert errors == "replay: stopped by SIGINT\n"
    assert not run.exists()


def test_a_reader_that_goes_away_does_not_take_the_run_with_it(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "replay", "run", "--trace", str(SAMPLE), *SIMULATED, "--no-plots", "--policy", "fifo",
         "--mode", "static", "--output", str(tmp_path / "run")], stderr=writer, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writer)
    os.close(reader)
    assert process.wait(timeout=120) in (0, 1)
    assert strict((tmp_path / "run" / "manifest.json").read_text())["status"] == "complete"
    assert (tmp_path / "run" / "comparison.md").is_file()


def test_arrivals_are_absolute_deadlines_and_latency_counts_from_them(tmp_path: Path) -> None:
    """The real engine, one slot: whoever has to wait has the wait in its latency, and lateness does not add up."""
    rows = [{"arrival_ms": 5.0 * row, "prompt_tokens": 4, "output_tokens": 4} for row in range(80)]
    trace = write_trace(tmp_path / "steady.parquet", rows)
    done = replay(
        "run", "--trace", trace, "--policy", "fifo", "--mode", "continuous", "--set", "engine.threads=1", "--set",
        "modes.continuous.max_running=1", "--output", tmp_path / "run", "--no-plots",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kept = pl.read_parquet(tmp_path / "run" / "cells" / "continuous-fifo" / "requests.parquet").sort("row")
    assert (kept["submitted"] >= kept["due"]).all()
    assert (kept["admitted"].diff() > 0).fill_null(value=True).all()
    # The report's latency is the arrival's, wait and all.
    summary = pl.read_parquet(tmp_path / "run" / "summary.parquet")
    e2e = summary.filter(by="all", metric="e2e", statistic="mean")["value"].item()
    assert e2e == pytest.approx((kept["finished"] - kept["due"]).mean())
    assert e2e > 2 * (kept["finished"] - kept["admitted"]).mean()
    # One slot: a request is admitted when the one before is done, so queueing shows up in full at the end.
    assert (kept["admitted"].slice(1) >= kept["finished"].slice(0, 79)).all()
    assert strict((tmp_path / "run" / "manifest.json").read_text())["cells"][0]["lag_p99_ms"] is not None


def test_a_cell_that_takes_arrivals_in_too_late_is_invalid_and_strict_says_so(tmp_path: Path) -> None:
    """No machine is within a millionth of a millisecond."""
    rows = [{"arrival_ms": 5.0 * row, "prompt_tokens": 4, "output_tokens": 2} for row in range(20)]
    trace = write_trace(tmp_path / "steady.parquet", rows)
    arguments = ("run", "--trace", trace, "--policy", "fifo", "--mode", "continuous", "--set", "engine.threads=1")
    done = replay(*arguments, "--set", "lag_limit_ms=1e-6", "--no-plots", "--strict", "--output", tmp_path / "run")
    assert done.returncode == 1
    assert "continuous-fifo is invalid: lag p99 is" in done.stderr
    assert "invalid" in (tmp_path / "run" / "comparison.md").read_text()
    assert not strict((tmp_path / "run" / "manifest.json").read_text())["cells"][0]["valid"]

"""What the report says of what policies went by: length predictors and admission rules, from an experiment file on."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from replay.cli import group

EXPERIMENT = """\
traces = ["small.parquet"]
[engine]
kind = "simulated"
kv_blocks = 40
[modes]
static = { batch_size = 2 }
continuous = { max_running = 8 }
[policies]
fifo = { admission = [{ rule = "past_future", window = [10, 20], reserve = 0.0 }, "headroom"] }
sjf = { admission = { rule = "past_future", window = 20, reserve = 0.0 } }
fair = { admission = { rule = "sglang_ratio", most = 50 } }
"""


def run(folder: Path, lengths: str, *options: str, declared: list[int] | None = None) -> Result:
    rows = 24
    trace = {
        "arrival_ms": [20 * row for row in range(rows)],
        "prompt_tokens": [16 + row % 5 for row in range(rows)],
        "output_tokens": [8 + 5 * (row % 7) for row in range(rows)],
        "user": ["ada" if row % 3 else "bob" for row in range(rows)],
        "max_tokens": declared or [60 + row % 4 for row in range(rows)],
    }
    pl.DataFrame(trace).write_parquet(folder / "small.parquet")
    (folder / "mine.toml").write_text(EXPERIMENT + f"[lengths]\n{lengths}\n")
    command = ["run", str(folder / "mine.toml"), "--output", str(folder / "out"), "--no-plots", *options]
    return CliRunner().invoke(group, command, catch_exceptions=False)


def test_the_report_names_admission_rules_with_their_settings_and_policies(tmp_path: Path) -> None:
    assert run(tmp_path, 'predictor = "noisy"', "--limit", "12").exit_code == 0
    report = (tmp_path / "out" / "comparison.md").read_text()
    told = [line for line in report.splitlines() if line.startswith("- admission by ")]
    assert told == [
        "- admission by `past_future` (window 10, samples 5, reserve 0.0) under fifo",
        "- admission by `past_future` (window 20, samples 5, reserve 0.0) under fifo and sjf",
        "- admission by `sglang_ratio`"
        " (initial 0.7, floor 0.14, decay_steps 600, retract_steps 20, most 50) under fair",
    ]
    assert "| fifo (admission=past_future window 10) |" in report
    requests = pl.read_parquet(tmp_path / "out" / "cells" / "*" / "requests.parquet")
    assert (requests["status"] == "completed").all()


@pytest.mark.parametrize(
    ("lengths", "line"),
    [
        ('predictor = "oracle"', "`oracle`, which knows the true lengths: an upper bound"),
        ('predictor = "noisy"\nsigma = 0.25', "`noisy` (sigma 0.25), which knows the true lengths in part"),
        ('predictor = "uniform"', "`uniform` (r 0.5), which knows the true lengths in part"),
        ('predictor = "bucket"', "`bucket` (width 200, accuracy 0.749), which knows the true lengths in part"),
        ('predictor = "ranker"\ntau = 0.4', "`ranker` (tau 0.4), which knows the true lengths in part"),
        ('predictor = "history"', "`history` (last 200)\n"),
        ('predictor = "user_mean"\nlast = 3', "`user_mean` (last 3)\n"),
    ],
)
def test_the_report_names_the_predictor_its_settings_and_what_it_knows(tmp_path: Path, lengths: str, line: str) -> None:
    run(tmp_path, lengths, "--policy", "fair", "--mode", "continuous", "--limit", "6")
    assert f"- lengths predicted by {line}" in (tmp_path / "out" / "comparison.md").read_text()


@pytest.mark.parametrize(("declared", "warned"), [([64] * 24, "one value"), ([64, 70] * 12, "2 values"), (None, None)])
def test_max_tokens_as_a_predictor_is_warned_of_where_it_says_nothing(
    tmp_path: Path, declared: list[int] | None, warned: str | None
) -> None:
    result = run(tmp_path, 'predictor = "max_tokens"', "--dry-run", declared=declared)
    assert ("warning: small: max_tokens has" in result.stderr) is (warned is not None)
    assert (warned or "") in result.stderr

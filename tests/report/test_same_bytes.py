"""The same rows give the same report, byte for byte: under other hash seeds, and with rows in another order."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
from runs import MODES, simulated_run

FILES = ("summary.json", "comparison.md")
REPORT = (
    "import sys, pathlib; from replay.report import write_report; write_report(pathlib.Path(sys.argv[1]), plots=False)"
)


def written(folder: Path, hash_seed: str) -> list[bytes]:
    done = subprocess.run(
        [sys.executable, "-c", REPORT, str(folder)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(folder / name).read_bytes() for name in FILES]


def test_a_report_is_the_same_under_another_hash_seed_and_with_rows_in_another_order(tmp_path: Path) -> None:
    modes = {name: MODES[name] for name in ("static", "continuous")}
    folder = simulated_run(tmp_path / "run", policies=("fifo", "sjf", "fair"), modes=modes, count=40, repeats=2)
    first = written(folder, "1")
    shuffled = tmp_path / "other" / "run"
    shutil.copytree(folder, shuffled)
    for file in shuffled.glob("cells/*/requests.parquet"):
        pl.read_parquet(file).sample(fraction=1.0, shuffle=True, seed=3).write_parquet(file)
    assert written(shuffled, "2") == first

"""`replay report` as it is typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner
from runs import static_batch

from replay.cli.report import report


def test_it_prints_the_table_and_says_where_the_files_are(tmp_path: Path) -> None:
    result = CliRunner().invoke(report, [str(static_batch(tmp_path)), "--no-plots"])
    assert result.exit_code == 0
    assert "output tokens/s" in result.stdout
    assert "static  fifo" in result.stdout
    assert str(tmp_path / "comparison.md") in result.stderr


def test_other_formats_print_the_files(tmp_path: Path) -> None:
    folder = str(static_batch(tmp_path))
    printed = CliRunner().invoke(report, [folder, "--no-plots", "--format", "json"]).stdout
    assert json.loads(printed)["run"] == "a run"
    assert CliRunner().invoke(report, [folder, "--no-plots", "--format", "markdown"]).stdout.startswith("# a run")


def test_a_folder_that_is_no_run_ends_with_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "replay", "report", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.strip() == f"replay: {tmp_path}: not the folder of a run, for it holds no manifest.json"


def test_help_imports_neither_polars_nor_seaborn() -> None:
    script = (
        "import sys, replay.cli.report as r\n"
        "heavy = {'polars', 'seaborn', 'matplotlib', 'torch', 'numpy'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_who_draws_nothing_waits_for_no_drawing_library(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom replay.report import write_report\n"
        "write_report(Path(sys.argv[1]), plots=False)\n"
        "sys.exit(', '.join(sorted({'pandas', 'seaborn', 'torch'} & set(sys.modules))) or 0)"
    )
    folder = str(static_batch(tmp_path))
    ended = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")

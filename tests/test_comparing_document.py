"""docs/comparing-runs.md: its commands run, and print what the page shows."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import command
from test_documents import blocks

from replay.compare import find_figure, read_check

PAGE = "docs/comparing-runs.md"


def replay(folder: Path, line: str, status: int = 0) -> str:
    """What a command prints."""
    program, *arguments = shlex.split(line)
    assert program == "replay"
    plain = ["--no-plots"] if arguments[0] == "run" else []
    done = command.replay(*arguments, *plain, cwd=folder)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    shutil.copy("traces/sample.parquet", tmp_path / "traces")
    first, last = blocks(PAGE, "sh")
    *runs, compare = first.splitlines()
    for line in runs:
        replay(tmp_path, line)
    (table,) = blocks(PAGE, "text")
    assert table in replay(tmp_path, compare)
    (check,) = blocks(PAGE, "console")
    line, _, shown = check.partition("\n")
    said = replay(tmp_path, line.removeprefix("$ "), status=1)
    assert [line for line in shown.splitlines() if line not in said.splitlines()] == []
    as_json, as_markdown = last.splitlines()
    assert list(json.loads(replay(tmp_path, as_json))["figures"]) == ["e2e_mean", "tpot_p50"]
    assert "| mode | policy | run |" in replay(tmp_path, as_markdown)


def test_the_bounds_and_figures_of_the_page_are_some() -> None:
    page = Path(PAGE).read_text(encoding="utf-8")
    for figure, bound in (
        ("ttft_p99", "200ms"),
        ("goodput", "90%"),
        ("tpot_mean", "1.05 * baseline"),
        ("itl_p99.9", "baseline + 5ms"),
        ("output_throughput", "0.95 * baseline - 2"),
    ):
        assert f"`{bound}`" in page
        assert str(read_check(f"{figure} < {bound}")) == f"{figure} < {bound}"
        assert find_figure(figure).name == figure
    read_check("ttft_mean > 1.05 * baseline and seen")

"""docs/sessions.md: its trace, its experiment and its commands, and the figures that it shows of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
from command import replay
from test_documents import blocks

from replay.metrics.notation import milliseconds, number, percent

PAGE = Path("docs/sessions.md")


def row(folder: Path, name: str, *, cached: bool) -> str:
    """A line of the page's table, from the summary of a run."""
    variant = f"prefix_cache={str(cached).lower()}"
    summary = pl.read_parquet(folder / name / "summary.parquet").filter(by="all", mode="continuous", variant=variant)

    def value(metric: str, statistic: str) -> float | None:
        found: float | None = summary.filter(metric=metric, statistic=statistic)["value"].item()
        return found

    figures = [
        milliseconds(value("ttft", "p50")),
        milliseconds(value("ttft", "p99")),
        number(value("session_time", "p50")),
        percent(value("cache_hit_rate", "value")),
        *(f"{value(status, 'count'):.0f}" for status in ("completed", "timed_out", "skipped")),
    ]
    return f"| {' | '.join([name, 'on' if cached else 'off', *figures])} |"


def test_the_page_shows_what_its_commands_give(tmp_path: Path) -> None:
    (script,) = blocks(str(PAGE), "python")
    for name, text in zip(("sessions.toml", "people.toml"), blocks(str(PAGE), "toml"), strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    runs = []
    for command in "".join(blocks(str(PAGE), "sh")).splitlines():
        program, *arguments = command.split()
        assert program == "replay"
        plain = ["--no-plots"] if arguments[0] == "run" else []
        done = replay(*arguments, *plain, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        if arguments[0] == "run":
            assert "30 sessions with 180 requests, in a" in done.stderr
            runs.append(arguments[-1])
    expected = [row(tmp_path, name, cached=cached) for name in runs for cached in (False, True)]
    page = PAGE.read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith(tuple(f"| {name} |" for name in runs))] == expected
    for name in runs:
        report = (tmp_path / name / "comparison.md").read_text(encoding="utf-8")
        assert f"sessions: {'open' if 'open' in name else 'closed'} loop, 30 sessions with 180 requests: " in report
        assert "Simulated: all times come from a cost model" in report

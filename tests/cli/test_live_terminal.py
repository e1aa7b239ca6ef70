"""The live view as a person has it: a real process in a real terminal, whose screen is read."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pyte
import pytest

SIMULATED = ["--set", "engine.kind=simulated", "--no-plots"]
COMMAND = [sys.executable, "-m", "replay"]
PLACE = re.compile(r"\[1/2\] continuous-fifo: \d+/\d+ done, \d+ running, \d+ waiting, KV \d+ %, .* tokens/s, TTFT p50")

LONG = 80_000  # requests: a cell of them lasts for seconds, on any machine long enough to be asked and stopped


class Terminal:
    """A process on a terminal of its own, and what stands on the screen. `sent`: all that was written to it."""

    def __init__(self, arguments: list[str], columns: int, lines: int, **environment: str) -> None:
        self.ours, self.theirs = pty.openpty()
        termios.tcsetwinsize(self.theirs, (lines, columns))
        self.screen = pyte.HistoryScreen(columns, lines, history=1000)
        self.sent = b""
        self._stream = pyte.ByteStream(self.screen)
        known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdin=self.theirs, stdout=self.theirs, stderr=self.theirs,
            env={**known, "TERM": "xterm-256color", **environment},
        )  # fmt: skip

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def everything(self) -> str:
        """The screen, and what has scrolled off it."""
        above = ("".join(line[place].data for place in range(self.screen.columns)) for line in self.screen.history.top)
        return "\n".join([*(line.rstrip() for line in above), self.text()])

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        termios.tcsetwinsize(self.theirs, (lines, columns))

    def until(self, seen: Callable[[str], object]) -> str:
        """Read until the screen is as it should be."""
        deadline = time.monotonic() + 120
        while not seen(self.text()):
            assert time.monotonic() < deadline, self.text()
            assert self._read(0.1) or self.process.poll() is None, self.everything()
        return self.text()

    def end(self) -> int:
        """Read until the process has ended."""
        while self._read(0.1) or self.process.poll() is None:
            pass
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        data = os.read(self.ours, 65536)
        self.sent += data
        self._stream.feed(data)
        return True

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A trace that takes a while even on a virtual clock."""
    return steady(tmp_path, 8_000)


def steady(folder: Path, requests: int) -> str:
    """A trace of so many requests, each 20 ms after the one before."""
    rows = pl.DataFrame({"arrival_ms": pl.int_range(requests, eager=True) * 20.0})
    file = folder / "long.parquet"
    rows.with_columns(prompt_tokens=pl.lit(8), output_tokens=pl.lit(4)).write_parquet(file)
    return str(file)


@contextlib.contextmanager
def running(trace: str, tmp_path: Path, columns: int, lines: int, *more: str, **environment: str) -> Iterator[Terminal]:
    arguments = ["run", "--trace", trace, "--mode", "continuous", "--policy", "fifo", "--policy", "sjf", *SIMULATED]
    terminal = Terminal([*arguments, *more, "--output", str(tmp_path / "run")], columns, lines, **environment)
    try:
        yield terminal
    finally:
        terminal.close()


def test_a_run_is_seen_as_it_goes_on_and_leaves_a_line_for_each_cell(tmp_path: Path, trace: str) -> None:
    with running(trace, tmp_path, 80, 24) as terminal:
        shown = terminal.until(lambda text: re.search(r"mean \d", text))
        assert re.search(r"^long  0 of 2 cells done$", shown, re.MULTILINE)
        assert re.search(r"^\[1/2\] continuous, fifo$", shown, re.MULTILINE)
        assert re.search(r"^requests +[\d,]+ of 8,000  █*·*  [\d.]+ s on its own clock$", shown, re.MULTILINE)
        assert re.search(r"^running +\d+  [▁-█]+ +peak \d+$", shown, re.MULTILINE)
        assert re.search(r"^tokens/s +[\d.]+  [▁-█]+ +mean [\d.]+$", shown, re.MULTILINE)
        assert re.search(r"^lag +p99 0.00 ms of 5 ms allowed  evictions 0$", shown, re.MULTILINE)
        shown = terminal.until(lambda text: "1 of 2 cells done, about " in text and "p50" in text)
        assert re.search(r"^1 continuous-fifo  8000/8000 .* s +\d+ +\d+  yes$|8000/8000 .*yes$", shown, re.MULTILINE)
        assert terminal.end() == 0
        left = terminal.everything()
        for place, cell in (("[1/2]", "continuous-fifo"), ("[2/2]", "continuous-sjf")):
            assert left.count(f"{place} {cell}: 8000 of 8000 completed in ") == 1
        assert "cells done" not in left, "the view is gone"
        assert "requests  " not in left
        assert left.index("[2/2]") < left.index("writing the report") < left.index("report: ")
        assert b"\x1b[36m" in terminal.sent


def test_a_smaller_terminal_shows_less_and_one_that_changes_is_drawn_anew(tmp_path: Path) -> None:
    with running(steady(tmp_path, LONG), tmp_path, 60, 15, NO_COLOR="1") as terminal:
        shown = terminal.until(lambda text: re.search(r"TTFT +p50 \d", text))
        assert re.search(r"^running +\d+  [▁-█]+$", shown, re.MULTILINE), "no remark beside the figure"
        terminal.resize(100, 30)
        shown = terminal.until(lambda text: re.search(r"^running +\d+  [▁-█]+ +peak \d+$", text, re.MULTILINE))
        assert shown.startswith("long  0 of 2 cells done"), "from the top"
        assert shown.count("cells done") == 1
        terminal.resize(40, 6)
        terminal.until(lambda text: text.startswith("[1/2] continuous-fifo: "))
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
        assert not re.search(rb"\x1b\[[\d;]*m", terminal.sent), "NO_COLOR"


def test_ctrl_c_leaves_the_last_frame_and_says_below_what_is_kept(tmp_path: Path) -> None:
    with running(steady(tmp_path, LONG), tmp_path, 80, 40) as terminal:
        before = termios.tcgetattr(terminal.theirs)
        terminal.until(lambda text: re.search(r"TTFT +p50 \d", text))
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
        assert termios.tcgetattr(terminal.theirs) == before
        left = terminal.everything()
        told = [
            "evictions 0",
            "replay: stopping",
            "[1/2] continuous-fifo: ",
            "(interrupted)",
            "what was measured is in",
        ]
        places = [left.index(text) for text in told]
        assert places == sorted(places)


def test_who_asks_by_a_signal_gets_a_line_below_the_view(tmp_path: Path) -> None:
    with running(steady(tmp_path, LONG), tmp_path, 120, 40) as terminal:
        terminal.until(lambda text: re.search(r"TTFT +p50 \d", text))
        terminal.process.send_signal(signal.SIGUSR1)
        shown = terminal.until(lambda text: PLACE.search(text) and text.count("cells done") == 2)
        places = [at.start() for at in re.finditer("cells done", shown)]
        line = PLACE.search(shown)
        assert line is not None
        assert places[0] < line.start() < places[1]
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130


@pytest.mark.parametrize("options", [[], ["-q"]], ids=["plain", "quiet"])
def test_without_a_terminal_there_are_plain_lines_and_when_quiet_only_what_is_asked_for(
    tmp_path: Path, options: list[str]
) -> None:
    run = tmp_path / "run"
    trace = steady(tmp_path, LONG)
    process = subprocess.Popen(
        [*COMMAND, *options, "run", "--trace", trace, "--mode", "continuous", "--policy", "fifo", "--policy", "sjf",
         *SIMULATED, "--output", str(run)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "FORCE_COLOR": "1"},
    )  # fmt: skip
    try:
        assert process.stderr is not None
        deadline = time.monotonic() + 120
        while not list(run.glob("cells/*/requests.part-*")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGUSR1)
        lines = []
        while not PLACE.search(line := process.stderr.readline()):
            assert line, lines
            lines.append(line)
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 143
    assert "\x1b" not in "".join(lines) + rest
    if options:
        assert lines == []
        assert rest.splitlines() == ["", "replay: stopping; what was measured is kept (again after 2 s: at once)"]
    else:
        assert "80,000 requests over" in lines[0]
        assert "[1/2] continuous-fifo: " in rest
        assert "(interrupted)" in rest


def test_asked_before_anything_runs_it_says_what_it_does(tmp_path: Path) -> None:
    """The engine is built for a while, and no loop looks."""
    process = subprocess.Popen(
        [*COMMAND, "run", "--trace", "traces/sample.parquet", "--set", "engine.model=smollm2-360m", "--output",
         str(tmp_path / "run")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        while "building the engine" not in (line := process.stderr.readline()):
            assert line, "it ended before it built an engine"
        process.send_signal(signal.SIGUSR1)
        assert process.stderr.readline() == "replay: building the engine: smollm2-360m, 1024 KV blocks\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.communicate()


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(tmp_path: Path, trace: str) -> None:
    with running(trace, tmp_path, 80, 24, "--limit", "50", TERM="dumb") as terminal:
        assert terminal.end() == 0
        assert b"\x1b" not in terminal.sent
        assert "[2/2] continuous-sjf: 50 of 50 completed in " in terminal.everything()

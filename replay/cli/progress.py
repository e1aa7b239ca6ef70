"""A run as it goes on, on stderr: a live line in a terminal, plain lines elsewhere.

It is told everything at every turn of the loop and draws a few times a second, so that it costs the loop nothing.
"""

from __future__ import annotations

import time
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from replay.experiment.grid import Cell
from replay.replayer import Progress

LIVE_SECONDS = 0.2
PLAIN_SECONDS = 5.0


def say(text: str) -> bool:
    """A line on stderr; False when nobody reads it any more, which is no reason to stop."""
    try:
        click.echo(text, err=True)
    except OSError:
        return False
    return True


class Display:
    """An observer of a run. `quiet` shows nothing at all."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._drawn = 0.0
        self._started = time.monotonic()
        self._cell_started = self._started
        self._number = self._total = 0
        self._cell: Cell | None = None

    def __enter__(self) -> Display:
        if not self._quiet and self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def remark(self, text: str) -> None:
        self._print(text)

    def cell_started(self, number: int, total: int, cell: Cell) -> None:
        self._number, self._total, self._cell = number, total, cell
        self._cell_started = self._drawn = time.monotonic()

    def progressed(self, progress: Progress) -> None:
        if self._quiet:
            return
        now = time.monotonic()
        if now - self._drawn < (LIVE_SECONDS if self._live else PLAIN_SECONDS):
            return
        self._drawn = now
        line = self._line(progress, now)
        if self._live is not None:
            self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)
        else:
            self._print(line)

    def cell_ended(self, cell: Cell, entry: dict[str, Any]) -> None:
        if self._quiet:
            return
        seconds = time.monotonic() - self._cell_started
        outcome = f"{entry['completed']} of {entry['requests']} completed in {seconds:.1f} s"
        doubts = [entry["status"]] if entry["status"] != "complete" else []
        doubts += [text for text in (entry["error"], entry["invalid_reason"]) if text]
        self._print(f"{self._place()} {cell.name}: {outcome}" + (f" ({'; '.join(doubts)})" if doubts else ""))

    def _line(self, progress: Progress, now: float) -> str:
        used = 100 * progress.used_blocks / progress.blocks
        name = self._cell.name if self._cell else ""
        return (
            f"{self._place()} {name}: {progress.ended}/{progress.requests} done, {progress.running} running, "
            f"{progress.waiting} waiting, KV {used:.0f} %{self._time_left(now)}"
        )

    def _time_left(self, now: float) -> str:
        """By what the cells so far took; nothing is known in the first."""
        done = self._number - 1
        if not done:
            return ""
        each = (self._cell_started - self._started) / done
        left = max(0.0, each * (self._total - done) - (now - self._cell_started))
        return f", about {left / 60:.0f} min left" if left >= 90 else f", about {left:.0f} s left"

    def _place(self) -> str:
        return f"[{self._number:>{len(str(self._total))}}/{self._total}]"

    def _print(self, text: str) -> None:
        if self._quiet:
            return
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)
        else:
            self._quiet = not say(text)

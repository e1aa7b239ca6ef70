"""A run as it goes on, on stderr: a live view in a terminal, plain lines elsewhere, a line when it is asked for.

It is called at every turn of the loop, and looks and draws a few times a second.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import click

from replay.cli.live.history import BARS, PLAIN_BARS
from replay.cli.live.lines import printable
from replay.cli.live.outlook import Outlook, TimeLeft
from replay.cli.live.screen import Screen
from replay.cli.live.table import finished
from replay.cli.live.tally import Tally
from replay.cli.live.view import View
from replay.cli.signals import RunSignals
from replay.experiment.grid import Cell
from replay.replayer import Progress

LOOK_SECONDS = 0.25
PLAIN_SECONDS = 5.0


def say(text: str) -> bool:
    """A line on stderr; False when nobody reads it any more, which is no reason to stop."""
    try:
        click.echo(text, err=True)
    except OSError:
        return False
    return True


class Display:
    """An observer of a run. `quiet` shows nothing at all, unless a signal asks where the run is."""

    def __init__(self, *, quiet: bool, signals: RunSignals | None = None) -> None:
        self._quiet = quiet
        self._signals = signals or RunSignals()
        self._screen: Screen | None = None
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        self._view = View(TimeLeft(), bars=_bars(encoding), colours="NO_COLOR" not in os.environ)
        self._encoding = encoding
        self._looked = self._said = self._cell_started = 0.0
        self._progress: Progress | None = None
        self._ended: list[str] = []  # lines of cells that ended, not yet printed

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def expect(self, outlook: Outlook) -> None:
        """What is known of the run before it runs."""
        self._view.time_left = TimeLeft(outlook)

    def remark(self, text: str) -> None:
        self._signals.doing = text
        if self._quiet:
            return
        if self._screen is not None:
            self._screen.above(printable(text))
        else:
            self._say(text)

    def cell_started(self, number: int, total: int, cell: Cell) -> None:
        view = self._view
        if number == 1:
            view.finished.clear()
        view.number, view.total, view.cell, view.tally = number, total, cell, None
        view.time_left.began(number, total)
        self._cell_started = self._looked = self._said = time.monotonic()
        self._signals.doing = view.line(0.0)
        if self._screen is None and not self._quiet and can_draw():
            self._screen = Screen(sys.stderr.fileno(), self._encoding)
        self._draw(0.0)

    def progressed(self, progress: Progress) -> None:
        now = time.monotonic()
        self._progress = progress
        if now - self._looked < LOOK_SECONDS and not self._signals.asked:
            return
        self._look(now)
        elapsed = now - self._cell_started
        if self._signals.asked:
            self._answer(elapsed)
        if self._screen is not None:
            self._draw(elapsed)
        elif not self._quiet and now - self._said >= PLAIN_SECONDS:
            self._said = now
            self._say(self._view.line(elapsed))

    def cell_ended(self, cell: Cell, entry: dict[str, Any]) -> None:
        now, view = time.monotonic(), self._view
        seconds = now - self._cell_started
        self._look(now)
        self._progress = None
        view.time_left.ended(view.number, seconds)
        view.finished.append(finished(view.number, cell, view.tally, entry))
        self._signals.doing = f"{view.place()} {cell.name}: has ended"
        if self._quiet:
            return
        outcome = f"{entry['completed']} of {entry['requests']} completed in {seconds:.1f} s"
        doubts = [entry["status"]] if entry["status"] != "complete" else []
        doubts += [text for text in (entry["error"], entry["invalid_reason"]) if text]
        line = f"{view.place()} {cell.name}: {outcome}" + (f" ({'; '.join(doubts)})" if doubts else "")
        if self._screen is None:
            self._say(line)
            return
        self._ended.append(line)
        if view.number == view.total or self._signals.stop.is_set():
            self._close()

    def _look(self, now: float) -> None:
        if self._progress is None:
            return
        self._looked = now
        if self._view.tally is None:
            self._view.tally = Tally()
        self._view.tally.look(self._progress)

    def _answer(self, elapsed: float) -> None:
        """The frame stays as it is, and the line comes below it: some terminals have just written there themselves."""
        self._signals.asked = False
        if self._screen is not None:
            self._screen.leave()
            self._screen.above(self._view.line(elapsed))
        else:
            say(self._view.line(elapsed))

    def _draw(self, elapsed: float) -> None:
        if self._screen is None:
            return
        if self._signals.spoke:  # below the frame, which so is not where it was
            self._signals.spoke = False
            self._screen.leave()
        if not self._signals.stop.is_set():
            self._screen.show(self._view.frame(elapsed, *self._screen.size()))

    def _close(self) -> None:
        """The view goes away, and what it showed of cells that ended is printed as lines."""
        if self._screen is not None:
            if self._signals.spoke:
                self._signals.spoke = False
                self._screen.leave()
            self._screen.close()
            self._screen = None
        for line in self._ended:
            self._say(line)
        self._ended.clear()

    def _say(self, text: str) -> None:
        self._quiet = self._quiet or not say(text)


def can_draw() -> bool:
    """Whether stderr is a terminal that knows where its cursor is."""
    try:
        return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except (AttributeError, ValueError):
        return False


def _bars(encoding: str) -> str:
    """Blocks, where they can be written."""
    try:
        BARS.encode(encoding)
    except UnicodeError:
        return PLAIN_BARS
    return BARS

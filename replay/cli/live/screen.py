"""Lines at the foot of what a terminal shows, drawn over themselves. It knows no figures.

It never waits: what a terminal does not take at once (it is slow, or was stopped with Ctrl-S) is kept, and no new frame
is drawn until it has gone.
"""

from __future__ import annotations

import os
import select
from collections.abc import Sequence

UP, CLEAR_LINE, CLEAR_BELOW, CLEAR_ALL = "\x1b[{}A", "\x1b[K", "\x1b[J", "\x1b[H\x1b[2J"
SMALLEST = (80, 24)  # of a terminal that does not say how large it is


class Screen:
    """The terminal that a file descriptor leads to."""

    def __init__(self, descriptor: int, encoding: str) -> None:
        self._descriptor = descriptor
        self._encoding = encoding
        self._own = _opened_anew(descriptor)
        self._pending = b""
        self._shown: list[str] = []
        self._size: tuple[int, int] | None = None

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            columns, lines = os.get_terminal_size(self._descriptor)
        except OSError:
            return SMALLEST
        return (columns, lines) if columns and lines else SMALLEST

    def show(self, lines: Sequence[str]) -> None:
        """Draw a frame over the last one. Each line is narrower than the terminal, and all are fewer than its lines."""
        self._write("")
        if self._pending:
            return
        size, text = self.size(), ""
        if self._size not in (None, size) and self._shown:  # what stood there has moved, nobody knows where to
            text, self._shown = CLEAR_ALL, []
        self._size = size
        if self._shown:
            text += "\r" + UP.format(len(self._shown))
        for place, line in enumerate(lines):
            known = place < len(self._shown) and self._shown[place] == line
            text += "\r\n" if known else f"{line}{CLEAR_LINE}\r\n"
        if len(lines) < len(self._shown):
            text += CLEAR_BELOW
        self._shown = list(lines)
        self._write(text)

    def above(self, text: str) -> None:
        """A line that stays, before the frame, which is drawn again below it."""
        self._write(self._erasing() + "".join(line + "\r\n" for line in (text, *self._shown)))

    def erase(self) -> None:
        """Take the frame away; what comes next stands in its place."""
        self._write(self._erasing())
        self._shown = []

    def leave(self) -> None:
        """Let the frame stand as it is; what comes next stands below it."""
        self._shown = []

    def close(self) -> None:
        """Take the frame away, and wait until the terminal has all of it."""
        self.erase()
        while self._pending:
            select.select([], [self._target], [])
            self._write("")
        if self._own is not None:
            os.close(self._own)
            self._own = None

    def _erasing(self) -> str:
        return "\r" + UP.format(len(self._shown)) + CLEAR_BELOW if self._shown else ""

    @property
    def _target(self) -> int:
        return self._descriptor if self._own is None else self._own

    def _write(self, text: str) -> None:
        self._pending += text.encode(self._encoding, errors="replace")
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._target, self._pending) :]
        except BlockingIOError:
            pass
        except OSError:  # nobody looks any more, which is no reason to stop
            self._pending = b""


def _opened_anew(descriptor: int) -> int | None:
    """The same terminal, so that writing to it never waits: of the one that we were given, others have copies."""
    try:
        return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return None

"""What Ctrl-C and SIGTERM do: the first asks a replay to stop soon and keep what it measured. And what SIGUSR1 does.

Outside a replay (a model is loaded, a picture drawn) there is nothing to keep, so the signal ends the process at once.
SIGUSR1, and Ctrl-T where there is a SIGINFO, ask where a run is, and disturb nothing: a handler leaves a note, and the
loop answers when it next looks.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from replay.stopping import Stop

PATIENCE = 2.0  # seconds within which a replay stops; a signal in that time is the same one again


class Interrupted(BaseException):
    """A signal came where nothing need be kept. `exit_status` is what the process ends with."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_status = 128 + number


def asking() -> list[signal.Signals]:
    """The signals that ask where a run is, as far as this system has them."""
    return [getattr(signal, name) for name in ("SIGUSR1", "SIGINFO") if hasattr(signal, name)]


class RunSignals:
    """SIGINT and SIGTERM set `stop`; `exit_status` is then 130 or 143. SIGUSR1 sets `asked`, for the loop to answer.

    Where no loop looks, a handler says itself what is `doing`. `spoke` tells that one has written on the terminal.
    """

    def __init__(self) -> None:
        self.stop = Stop()
        self.exit_status: int | None = None
        self.asked = False
        self.spoke = False
        self.doing = "reading the experiment and its traces"
        self._first = 0.0

    def forget(self) -> None:
        """The run is complete all the same: what comes now is another wish."""
        self.exit_status = None
        self.stop.clear()

    @contextmanager
    def installed(self) -> Iterator[RunSignals]:
        """Handle the signals within this block."""
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        before |= {number: signal.signal(number, self._ask) for number in asking()}
        try:
            yield self
        finally:
            if self.exit_status is None:  # else the process ends soon, as it was asked to: the same wish again is none
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.exit_status is not None:
            if time.monotonic() - self._first > PATIENCE:
                os._exit(self.exit_status)  # it does not stop: what is on disk is readable as it is
            return
        self.exit_status = 128 + number
        self._first = time.monotonic()
        self.stop.set()
        if not self.stop.gentle:
            raise Interrupted(number)
        self._speak(f"\nreplay: stopping; what was measured is kept (again after {PATIENCE:g} s: at once)\n")

    def _ask(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.stop.gentle:
            self.asked = True
        else:
            self._speak(f"replay: {self.doing}\n")

    def _speak(self, text: str) -> None:
        """Past Python's buffers, which may be in use by what was interrupted."""
        self.spoke = True
        with suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), text.encode(errors="replace"))

"""What Ctrl-C and SIGTERM do: the first asks a replay to stop soon and keep what it measured.

Outside a replay (a model is loaded, a picture drawn) there is nothing to keep, so the signal ends the process at once.
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


class StopSignals:
    """SIGINT and SIGTERM set `stop`; `exit_status` is then 130 or 143."""

    def __init__(self) -> None:
        self.stop = Stop()
        self.exit_status: int | None = None
        self._first = 0.0

    def forget(self) -> None:
        """The run is complete all the same: what comes now is another wish."""
        self.exit_status = None
        self.stop.clear()

    @contextmanager
    def installed(self) -> Iterator[StopSignals]:
        """Handle the two signals within this block."""
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
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
        with suppress(OSError):
            sys.stderr.write(f"\nreplay: stopping; what was measured is kept (again after {PATIENCE:g} s: at once)\n")

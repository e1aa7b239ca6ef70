"""Two clocks: one that passes by itself, and one that moves only when told.

Both count seconds from a zero that is set when they are made, and both hold whole nanoseconds inside, so that the
seconds they give are the nearest floats to exact instants and a worked example comes out to the last digit.
Nothing else in `replay` reads the time.
"""

from __future__ import annotations

import time
from typing import Protocol

from replay.stopping import Stop

NANOSECONDS = 1_000_000_000
LOOK = 0.05  # seconds after which a sleeper looks whether it is to stop


def to_nanosecond(seconds: float) -> float:
    """The nearest instant that a clock can show: whoever waits for a computed instant will find it reached."""
    return round(seconds * NANOSECONDS) / NANOSECONDS


class Clock(Protocol):
    """Seconds since zero, and a way to wait for a later instant. `zero_unix`: when the zero was, if it ever was."""

    zero_unix: float | None

    def start(self) -> None:
        """Set the zero to this instant."""

    def now(self) -> float:
        """Seconds since the clock's zero."""

    def sleep_until(self, instant: float) -> None:
        """Return at `instant` (seconds since zero), or at once if it has passed."""


class WallClock:
    """The machine's monotonic clock. A `stop` that is asked for ends a sleep early."""

    def __init__(self, stop: Stop | None = None) -> None:
        self._stop = stop or Stop()
        self.start()

    def start(self) -> None:
        self.zero_unix: float | None = time.time()
        self._zero = time.monotonic_ns()

    def now(self) -> float:
        return (time.monotonic_ns() - self._zero) / NANOSECONDS

    def sleep_until(self, instant: float) -> None:
        while (left := instant - self.now()) > 0 and not self._stop.is_set():
            time.sleep(min(left, LOOK))


class VirtualClock:
    """A clock that stands still until somebody sleeps: the simulated engine's."""

    zero_unix: float | None = None

    def __init__(self) -> None:
        self._nanoseconds = 0

    def start(self) -> None:
        self._nanoseconds = 0

    def now(self) -> float:
        return self._nanoseconds / NANOSECONDS

    def sleep_until(self, instant: float) -> None:
        nanoseconds = round(instant * NANOSECONDS)
        while nanoseconds / NANOSECONDS < instant:
            nanoseconds += 1  # never before the instant: who sleeps until then finds it reached
        self._nanoseconds = max(self._nanoseconds, nanoseconds)

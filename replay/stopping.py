"""The wish that a run should stop: asked from outside, looked at by the loop, and where it may simply interrupt.

It does not know signals; whoever asks knows why. There is no lock in it: a signal handler that asks would wait for the
very code that it interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Stop:
    """A flag that, once set, ends a replay soon. `gentle` says that somebody is there who looks at it.

    While nobody is (a model is loaded, a picture drawn), whoever wants to stop may interrupt at once.
    """

    def __init__(self) -> None:
        self._asked = False
        self.gentle = False

    def set(self) -> None:
        """Ask to stop."""
        self._asked = True

    def clear(self) -> None:
        """Nobody asks any more."""
        self._asked = False

    def is_set(self) -> bool:
        """Whether somebody has asked."""
        return self._asked

    @contextmanager
    def gently(self) -> Iterator[None]:
        """Within this block work ends by itself soon after the flag is set, and must not be interrupted."""
        before, self.gentle = self.gentle, True
        try:
            yield
        finally:
            self.gentle = before

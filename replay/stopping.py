"""The wish that a run should stop: asked from outside, looked at by the loop, and where it may simply interrupt.

It does not know signals; whoever asks knows why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event


class Stop(Event):
    """An event that, once set, ends a replay soon. `gentle` says that somebody is there who looks at it.

    While nobody is (a model is loaded, a picture drawn), whoever wants to stop may interrupt at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gentle = False

    @contextmanager
    def gently(self) -> Iterator[None]:
        """Within this block work ends by itself soon after the event is set, and must not be interrupted."""
        self.gentle = True
        try:
            yield
        finally:
            self.gentle = False

"""What is said when a promise is broken: a sentence that names what was expected, and the step where it is known.

An AssertionError all of them, so that whoever runs a test sees one.
"""

from __future__ import annotations

from typing import NoReturn, Self


class Broken(AssertionError):
    """A promise is broken; the message is the sentence. `step` is filled in by whoever watches the replay."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.step: str | None = None  # `3, at 0.045 s`
        self.placed = False

    @property
    def of_ends(self) -> bool:
        """Whether the replay did not come to its end, so that what was promised of it is not known."""
        return isinstance(self, Stuck | Raised)

    def at(self, place: str) -> Self:
        """The same, said of a place in somebody's code."""
        self.args = (f"{self} ({place})",)
        self.placed = True
        return self


class Stuck(Broken):
    """The replay does not end, or nobody who waits is ever served."""


class Raised(Broken):
    """The policy's own code raised an exception."""


class Unfit(Exception):
    """A trial says nothing of a promise: another one is drawn."""


def suits(fit: object) -> None:
    """Leave a trial that says nothing of a promise."""
    if not fit:
        raise Unfit


def expect(kept: object, sentence: str) -> None:
    """Raise Broken with `sentence` unless it is so."""
    if not kept:
        broken(sentence)


def broken(sentence: str, step: str | None = None) -> NoReturn:
    """Raise Broken with `sentence`, of a step where it is known."""
    fault = Broken(sentence)
    fault.step = step
    raise fault

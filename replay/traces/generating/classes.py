"""Classes of one user's requests: how urgent each is, what is promised it, and how long its requests are."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from pydantic import Field

from replay.traces.generating.lengths import Lengths
from replay.traces.generating.sections import Section
from replay.traces.generating.zipf import cumulated, picker

SAID = ("slo", "priority", "deadline_ms", "max_tokens")  # what a class may say; what it does not, the user says


class Urgency(Section):
    """What a request says of itself: its class of service, how urgent it is, the time to its first token, its most."""

    slo: str | None = None
    priority: int | None = None
    deadline_ms: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)


class ServiceClass(Urgency):
    """One class, and how much of the requests (or sessions) is of it, beside the `share` of each other.

    It may have lengths and a prefix of its own, so that what goes together in a request stays together.
    """

    share: float = Field(default=1.0, gt=0)
    prompt: Lengths | None = None
    output: Lengths | None = None
    prefix: str | None = None

    @property
    def own(self) -> dict[str, object]:
        """What it says of its requests, by key."""
        keys = (*SAID, "prompt", "output", "prefix")
        return {key: value for key in keys if (value := getattr(self, key)) is not None}


def class_from(classes: Sequence[ServiceClass], stream: random.Random) -> Callable[[], int]:
    """A function that draws the place of a class; always 0 where there is but one."""
    if len(classes) < 2:
        return lambda: 0
    return picker(cumulated(each.share for each in classes), stream)

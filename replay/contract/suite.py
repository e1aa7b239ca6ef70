"""Holds a policy to a promise: draws trials with Hypothesis, and looks for the smallest that breaks it.

No database and no clock decides which are drawn: the same seed draws the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from replay.contract.expect import Broken, Unfit
from replay.contract.promises import Promise
from replay.contract.shrinking import shrink
from replay.contract.trials import Subject, Trial

AT_A_TIME = 3  # examples beside the simplest
PATIENCE = 15.0  # seconds of looking for a smaller trial that breaks a promise
QUIET = settings(
    database=None,
    deadline=None,
    phases=[Phase.generate],
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@dataclass
class Breach:
    """A promise that was broken: by which trial, the smallest that was found, and how."""

    promise: Promise
    trial: Trial
    fault: Broken

    @property
    def of_ends(self) -> bool:
        """Whether the replay did not come to its end, so that the promise itself was not looked at."""
        return self.fault.of_ends


def hold_to(
    promise: Promise, subject: Subject, *, examples: int, seed: int = 0, smallest: Callable[[Broken], bool] = bool
) -> Breach | None:
    """The smallest trial found in which `subject` breaks `promise`, of so many examples; None: it is kept.

    `smallest` says of a fault whether a smaller trial is worth looking for. They are drawn a few at a time, each time
    anew: in one go most would be variations of a few.
    """
    found: list[Breach] = []
    simplest: list[Trial] = []  # the first to be drawn, each time

    def test(trial: Trial) -> None:
        if found or trial in simplest:
            return
        simplest[:] = simplest or [trial]
        if breach := _breach(promise, subject, trial):
            found.append(breach)

    drawn = settings(QUIET, max_examples=1 + AT_A_TIME)(given(promise.trials)(test))
    for turn in range(-(-examples // AT_A_TIME)):
        seeded(1_000_003 * seed + turn)(drawn)()
        if found:
            break
    if not found or not smallest(found[0].fault):
        return found[0] if found else None
    until = time.monotonic() + PATIENCE
    hurried = subject.hurried()

    def breaks(trial: Trial) -> bool:
        breach = _breach(promise, hurried, trial) if time.monotonic() < until else None
        found.extend([breach] if breach else [])
        return breach is not None

    shrink(found[0].trial, breaks)
    return found[-1]


def _breach(promise: Promise, subject: Subject, trial: Trial) -> Breach | None:
    try:
        promise.check(subject, trial)
    except Broken as fault:
        return Breach(promise, trial, fault)
    except Unfit:
        pass
    return None

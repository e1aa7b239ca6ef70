"""Holds a policy to a promise: draws trials with Hypothesis, and finds the smallest that breaks it.

No database and no clock decides which are drawn: the same seed draws the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from replay.contract.expect import Broken, Raised, Stuck
from replay.contract.promises import Promise
from replay.contract.trials import Subject, Trial

PATIENCE = 30.0  # seconds of looking for a smaller trial that breaks a promise
QUIET = settings(
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
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
        return isinstance(self.fault, Stuck | Raised)


class _Found(Exception):
    """A trial breaks the promise: all faults are alike to Hypothesis, which looks for the smallest trial."""


class _Enough(BaseException):
    """No smaller trial is looked for."""


def hold_to(
    promise: Promise,
    subject: Subject,
    *,
    examples: int,
    seed: int | None = None,
    shrink: Callable[[Broken], bool] = bool,
) -> Breach | None:
    """The smallest trial found in which `subject` breaks `promise`, of so many examples; None: it is kept.

    `shrink` says whether a smaller one is worth looking for. Without a `seed` everybody draws the same examples.
    """
    breach: Breach | None = None
    until = 0.0

    def test(trial: Trial) -> None:
        nonlocal breach, until
        if breach is not None and time.monotonic() > until:
            raise _Enough
        fault = _fault(promise, subject, trial)
        if fault is None:
            return
        if breach is None:
            until = time.monotonic() + PATIENCE
        breach = Breach(promise, trial, fault)
        if not shrink(fault):
            raise _Enough
        raise _Found

    wanted = settings(QUIET, max_examples=examples, derandomize=seed is None)
    drawn = wanted(given(promise.trials)(test))
    try:
        (drawn if seed is None else seeded(seed)(drawn))()
    except (_Found, _Enough):
        pass
    except Exception:
        if breach is None:
            raise
        # It broke the promise once and not again, as a policy that looks at a clock may: it is broken all the same.
    return breach


def _fault(promise: Promise, subject: Subject, trial: Trial) -> Broken | None:
    try:
        promise.check(subject, trial)
    except Broken as fault:
        return fault
    return None

"""A trial: a drawn trace on a drawn engine, in a mode, for one policy under watch; and the replay of it.

Whatever ends a replay too soon becomes a sentence here: an exception, books that do not balance, a replay that does not
end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from hypothesis import strategies as st

from replay.contract.cases import MODES, PLAIN, Case, Engine, cases, engines, replay
from replay.contract.checks import check_empty, check_step
from replay.contract.expect import Broken, Stuck
from replay.contract.simulation import Replayed
from replay.contract.watched import Watched, place
from replay.errors import EngineError
from replay.executors.interface import Batch
from replay.replayer import Replayer
from replay.request import Request
from replay.scheduler import Policy

Mode = tuple[str, dict[str, Any]]
PREDICTORS = ("oracle", "max_tokens", "user_mean", "history", "noisy")  # none that knows who is still to come
TURNS = 20_000  # of the loop in a row, without a step
SECONDS = 2.0  # of computing; a replay takes a few milliseconds
AGAIN = 0.1  # seconds of computing after which the clock strikes again


@dataclass
class Subject:
    """A policy on trial: `make` makes it anew for each replay. `breaks` says what it breaks on purpose, and why."""

    name: str
    make: Callable[[], Policy]
    breaks: Mapping[str, str] = field(default_factory=dict)
    seconds: float = SECONDS  # of computing, after which a replay is taken to be stuck

    def hurried(self) -> Subject:
        """The same with less patience: for when it is known to be stuck, and each replay is waited for."""
        return replace(self, seconds=SECONDS / 4)


@dataclass
class Trial:
    """What was drawn. `chance` is for whatever a promise draws beside it."""

    case: Case
    mode: Mode
    engine: Engine
    predictor: str
    chance: int


def trials(
    *,
    limited: bool | None = None,
    modes: Sequence[Mode] = MODES,
    engine: st.SearchStrategy[Engine] = engines,
    predictors: Sequence[str] = PREDICTORS,
    **options: Any,
) -> st.SearchStrategy[Trial]:
    """Trials, of cases that are `limited` or not; None: of both."""
    drawn = st.booleans() if limited is None else st.just(limited)
    case = drawn.flatmap(lambda one: cases(limited=one, **options))
    return st.builds(
        Trial, case, st.sampled_from(modes), engine, st.sampled_from(predictors), chance=st.integers(0, 1000)
    )


def run(
    subject: Subject,
    trial: Trial,
    *,
    rows: list[Request] | None = None,
    turn: Callable[[Replayer, float], None] | None = None,
    guarded: bool = False,
    lax: bool = False,
    **options: Any,
) -> Replayed:
    """Replay a trial, with a look at each step unless it is `lax`. Raises Broken, with its step, if it goes wrong."""
    watch = Watched(subject.make(), guarded=guarded)
    replayers: list[Replayer] = []
    most = 50 + 5 * trial.case.tokens
    steps = turns = 0

    def check(replayer: Replayer, batch: Batch) -> None:
        nonlocal steps, turns
        steps, turns = steps + 1, 0
        replayers[:] = [replayer]
        if steps > most:
            raise Stuck(f"{trial.case.tokens} tokens are computed in fewer than {most} steps; this replay does not end")
        if not lax:
            check_step(replayer, batch)

    def look(replayer: Replayer, now: float) -> None:
        nonlocal turns
        turns += 1
        if turns > TURNS:
            raise Stuck(
                f"somebody is given tokens at last; the policy was asked {TURNS:,} times in a row and ran nobody"
            )
        if turn is not None:
            turn(replayer, now)

    options |= {"predictor": trial.predictor, "check": check, "turn": look}
    try:
        with _time_limit(subject.seconds):
            replayed = replay(trial.case, watch, trial.mode, trial.engine, rows, **options)
            check_empty(replayers)
    except Broken as fault:
        fault.step = fault.step or watch.at
        raise
    except Exception as fault:
        told = _told(fault, type(watch.watched).__name__)
        told.step = watch.at
        raise told from fault
    return replayed


def _told(fault: Exception, policy: str) -> Broken:
    """An exception of the engine's as a broken promise."""
    sentence = str(fault).replace(Watched.__name__, policy)
    if isinstance(fault, EngineError):
        return Stuck(sentence)
    if isinstance(fault, AssertionError):
        return Broken(sentence or f"the engine's books balance ({place(fault)})")
    return Broken(f"the engine can go on; {type(fault).__name__}: {sentence} ({place(fault)})")


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """A loop that calls nothing is found by the clock alone: Stuck, with the line where it was found."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def found(number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_globals.get("__name__", "").startswith("hypothesis"):
            return  # it listens to the garbage collector, where what is raised is lost; the clock strikes again
        raise Stuck(f"`schedule` returns; this replay has computed for {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, found)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


__all__ = ["PLAIN", "Mode", "Subject", "Trial", "run", "trials"]

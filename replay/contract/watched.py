"""A policy under watch: what it raises is told with its line, a schedule that never ends is stopped, and what it may
only read is compared with what it was.

It stands between the scheduler and the policy, and changes nothing of what either says.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import replay
from replay.contract.expect import Broken, Raised, Stuck, expect
from replay.request import Request
from replay.scheduler import Policy, Step
from replay.scheduler.listener import Listener

CALLS = 5_000  # of one step's methods in one schedule
DECISIONS = ("run", "evict", "reject")
QUESTIONS = ("admits", "affords", "withhold", "expected_tokens", "prefix_hit", "seconds", "scheduled", "active")
READ_ONLY = tuple(field.name for field in fields(Request) if field.name != "memory")
OF_STEP = ("number", "now", "gate", "closed", "size", "budget", "given tokens", "admitted", "evicted", "rejected")
OURS = Path(replay.__file__).parent

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Notes = list[tuple[Any, ...]]


class Watched(Policy):
    """`policy` as the scheduler meets it. Where it is `guarded`, what it may only read is compared at each call.

    `at` is the step that is planned, or that was planned last.
    """

    def __init__(self, policy: Policy, *, guarded: bool = False) -> None:
        self.watched = policy
        self.at: str | None = None
        self._guarded = guarded
        self._requests: list[Request] = []
        self._calls = 0
        self._seen: Notes = []

    def listeners(self) -> Sequence[Listener]:
        return [Overheard(listener, self) for listener in self.call(self.watched.listeners)]

    def enqueue(self, request: Request, step: Step) -> None:
        self.call(self.watched.enqueue, request, step)

    def wake(self, now: float) -> float | None:
        return self.call(self.watched.wake, now)

    def schedule(self, step: Step) -> None:
        self.at = _name(step)
        self._calls = 0
        for name in (*DECISIONS, *QUESTIONS):
            setattr(step, name, self._counted(name, getattr(step, name), step))
        self._look(step)
        self._placed(self.watched.schedule, step)
        self._compare(step)

    def meet(self, request: Request) -> None:
        """`request` has arrived."""
        if self._guarded and request not in self._requests:
            self._requests.append(request)

    def call(self, method: Callable[..., Result], *arguments: Any) -> Result:
        """Call the policy, or what it carries, outside `schedule` or from within a step's method."""
        if arguments and isinstance(arguments[-1], Step):
            self.at = _name(arguments[-1])
        self._look()
        result = self._placed(method, *arguments)
        self._compare()
        return result

    def _placed(self, method: Callable[..., Result], *arguments: Any) -> Result:
        """What it raises is told with its place."""
        try:
            return method(*arguments)
        except Stuck as fault:
            raise fault if fault.placed else fault.at(place(fault)) from None
        except Broken:
            raise
        except Exception as fault:
            raise Raised(f"the policy raises nothing; {type(fault).__name__}: {fault}").at(place(fault)) from fault

    def _counted(self, name: str, method: Callable[Arguments, Result], step: Step) -> Callable[Arguments, Result]:
        decides = name in DECISIONS and self._guarded

        def counted(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
            self._calls += 1
            if self._calls > CALLS:
                raise Stuck(f"`schedule` ends; this one has called the step {CALLS:,} times, at last `{name}`")
            if not decides:
                return method(*arguments, **named)
            self._compare(step)
            result = method(*arguments, **named)
            self._look(step)
            return result

        return counted

    def _look(self, step: Step | None = None) -> None:
        if self._guarded:
            self._seen = self._notes(step)

    def _compare(self, step: Step | None = None) -> None:
        if not self._guarded:
            return
        for before, after in zip(self._seen, self._notes(step), strict=True):
            if before != after:
                _tell(before, after)

    def _notes(self, step: Step | None) -> Notes:
        """All that a policy may only read, of each request that has arrived, and of the step where there is one."""
        notes: Notes = [("request", *_read_only(one), len(one.token_times)) for one in self._requests]
        if step is not None:
            rows = [tuple(rows) for rows in (step.shares, step.admitted, step.evicted)]
            notes.append(("step", *_of_step(step), *rows, len(step.rejected)))
        return notes


def _name(step: Step) -> str:
    return f"{step.number}, at {step.now:g} s"


def _tell(before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    kind, *known = before
    names = (*READ_ONLY, "token_times") if kind == "request" else OF_STEP
    owner = f" of row {known[0]}" if kind == "request" else ""
    for name, was, now in zip(names, known, after[1:], strict=True):
        expect(was == now, f"a policy reads `{kind}.{name}`{owner} and never sets it; it was {was!r}, and is {now!r}")


_read_only = attrgetter(*READ_ONLY)
_of_step = attrgetter(*OF_STEP[:6])


class Overheard(Listener):
    """A listener of the policy's, under the same watch."""

    def __init__(self, listener: Listener, watch: Watched) -> None:
        self._listener = listener
        self._watch = watch

    def on_arrival(self, request: Request, step: Step) -> None:
        self._watch.meet(request)
        self._watch.call(self._listener.on_arrival, request, step)

    def on_admit(self, request: Request, step: Step) -> None:
        self._watch.call(self._listener.on_admit, request, step)

    def on_tokens(self, request: Request, tokens: int, new: int, seconds: float, step: Step) -> None:
        self._watch.call(self._listener.on_tokens, request, tokens, new, seconds, step)

    def on_evict(self, request: Request, step: Step) -> None:
        self._watch.call(self._listener.on_evict, request, step)

    def on_finish(self, request: Request, step: Step) -> None:
        self._watch.call(self._listener.on_finish, request, step)


def place(fault: BaseException) -> str:
    """`mine.py, line 12`: of the frames, the last that is not replay's own."""
    frames = traceback.extract_tb(fault.__traceback__)
    foreign = [frame for frame in frames if OURS not in Path(frame.filename).parents]
    frame = (foreign or frames)[-1]
    return f"{Path(frame.filename).name}, line {frame.lineno}"

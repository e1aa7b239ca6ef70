"""Every registered policy keeps what every policy promises; and whoever breaks a promise on purpose is found out, with
a trace that shows it and is small.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import pytest

from replay.contract.cases import MODES, Fickle
from replay.contract.expect import Broken
from replay.contract.promises import promises
from replay.contract.suite import Breach, hold_to
from replay.contract.telling import told
from replay.contract.trials import Subject, Trial, trials
from replay.replayer import Replayer
from replay.scheduler import Ordered, Policy, Request, Scheduler, Step, admissions, modes, policies

EXAMPLES = {"served": 18, "causal": 9, "busy": 12}
OTHERWISE = 6
SEED = random.randrange(10**6) if os.environ.get("REPLAY_EXAMPLES") == "fuzz" else 0  # `make fuzz` draws others


def kept(promise: str, subject: Subject, examples: int) -> bool:
    """Whether it is kept; if it is not, pytest shows what broke it."""
    breach = hold_to(promises[promise], subject, examples=examples, seed=SEED)
    assert breach is None, "\n".join([f"seed {SEED}", *told(breach)])
    return True


@pytest.mark.parametrize("promise", promises)
@pytest.mark.parametrize("policy", list(policies))
def test_a_policy_keeps_its_promises(policy: str, promise: str) -> None:
    subject = Subject(policy, policies[policy], policies[policy].breaks)
    if promise in subject.breaks:
        pytest.skip(subject.breaks[promise])
    assert kept(promise, subject, EXAMPLES.get(promise, OTHERWISE))


@pytest.mark.parametrize("promise", ["served", "busy", "causal"])
@pytest.mark.parametrize("rule", list(admissions))
def test_no_admission_rule_breaks_a_promise(rule: str, promise: str) -> None:
    subject = Subject("fifo", lambda: policies["fifo"](admission=rule))  # type: ignore[call-arg]  # an Ordered one
    assert kept(promise, subject, examples=9)


@pytest.mark.parametrize("promise", ["served", "gone"])
def test_a_policy_that_changes_its_mind_loses_no_token(promise: str) -> None:
    assert kept(promise, Subject("fickle", Fickle), examples=120)


def test_clients_may_go_away_where_nobody_is_turned_away() -> None:  # as in a trace that was made smaller
    promise = replace(promises["gone"], trials=trials(limited=False))
    assert hold_to(promise, Subject("fifo", policies["fifo"]), examples=9) is None


def test_every_mode_is_covered() -> None:
    assert {name for name, _ in MODES} == set(modes)


def test_what_a_policy_breaks_on_purpose_is_a_promise() -> None:
    for name in policies:
        assert policies[name].breaks.keys() <= promises.keys(), name


@dataclass
class Forgetful(Ordered):
    """Forgets every third request."""

    def enqueue(self, request: Request, step: Step) -> None:
        if request.row % 3 != 2:
            super().enqueue(request, step)


@dataclass
class Evicting(Ordered):
    """Evicts whoever has run, at every step, and lets another join."""

    def schedule(self, step: Step) -> None:
        for request in step.running:
            step.evict(request)
        self.join(step)


@dataclass
class PingPong(Policy):
    """Whoever has run longest makes room for whoever waits."""

    def schedule(self, step: Step) -> None:
        waiting = sorted(step.waiting, key=lambda one: one.sequence)
        if waiting and step.running:
            for request in step.running:
                step.evict(request, "recompute")
        for request in [*step.running, *waiting[:1]]:
            step.run(request)


@dataclass
class Lazy(Ordered):
    """Does nothing in every fourth step."""

    turns: int = field(default=0, init=False)

    def schedule(self, step: Step) -> None:
        self.turns += 1
        if self.turns % 4:
            super().schedule(step)

    def wake(self, now: float) -> float | None:
        return now + 0.003


@dataclass
class Clocked(Ordered):
    """Orders by the wall clock's last digits."""

    def key(self, request: Request, step: Step) -> float:
        return time.time_ns() // 1000 % 7


@dataclass
class Chance(Ordered):
    """Orders by the global generator's draws."""

    def key(self, request: Request, step: Step) -> float:
        return random.random()


@dataclass
class Hashed(Ordered):
    """Orders by a hash of a name."""

    def key(self, request: Request, step: Step) -> float:
        return crc32(request.request_id.encode())


def lying_about(kind: type) -> Any:
    """The nearest caller that is a method of such an object: where somebody may look who is not shown."""
    frame: Any = sys._getframe()
    while not isinstance(frame.f_locals.get("self"), kind):
        frame = frame.f_back
    return frame.f_locals["self"]


@dataclass
class Leaking(Ordered):
    """Shortest first, by lengths that nobody showed it."""

    def key(self, request: Request, step: Step) -> float:
        return lying_about(Scheduler)._output_tokens[request.row]


@dataclass
class Foreseeing(Ordered):
    """Serves the last of those who are there first, if somebody comes much later."""

    def key(self, request: Request, step: Step) -> float:
        later = any(one.arrival > step.now for one in lying_about(Replayer)._requests)
        return -request.row if later else request.row


@dataclass
class Mutating(Ordered):
    """Makes everybody's answer look further than it is."""

    def key(self, request: Request, step: Step) -> float:
        request.priority = 7
        return 0.0


@dataclass
class Greedy(Ordered):
    """Gives itself a budget."""

    def schedule(self, step: Step) -> None:
        if step.budget is not None:
            step.budget += 1
        super().schedule(step)


@dataclass
class Raising(Ordered):
    """Divides by the number of those who run."""

    def key(self, request: Request, step: Step) -> float:
        return 1 / len(step.running)


@dataclass
class Asking(Ordered):
    """Asks for ever."""

    def schedule(self, step: Step) -> None:
        while step.running:
            for request in step.running:
                step.run(request)
        super().schedule(step)


@dataclass
class Early(Ordered):
    """Is another one in the first second."""

    dynamic = True

    def key(self, request: Request, step: Step) -> float:
        return request.row if step.now < 1.0 else -request.row


@dataclass
class Shared(Ordered):
    """Keeps its notes in the class, so that the next replay finds them."""

    notes = [0]  # noqa: RUF012

    def key(self, request: Request, step: Step) -> float:
        self.notes[0] += 1
        return -self.notes[0] if self.notes[0] % 5 else 0


@dataclass
class Idle(Ordered):
    """Waits for ever for a tenth request."""

    def schedule(self, step: Step) -> None:
        if step.waiting_count > 9 or step.running:
            super().schedule(step)


@dataclass
class Starving(Ordered):
    """Turns everybody away who does not say why."""

    def schedule(self, step: Step) -> None:
        for request in list(step.waiting):
            if request.user is None:
                step.reject(request, "")
        super().schedule(step)


def small(breach: Breach) -> bool:
    return len(breach.trial.case.arrivals) <= 4 and breach.trial.case.tokens <= 60


@pytest.mark.parametrize(
    ("policy", "promise", "sentence"),
    [
        (Forgetful, "ends", "is never given tokens"),
        (Evicting, "ends", "this replay does not end"),
        (PingPong, "ends", "this replay does not end"),
        (Lazy, "busy", "the engine computes nothing from"),
        (Clocked, "repeatable", "the same seed gives the same replay"),
        (Chance, "repeatable", "the same seed gives the same replay"),
        (Shared, "repeatable", "the same seed gives the same replay"),
        (Hashed, "names", "other names change nothing"),
        (Leaking, "blind", "changes nothing before it would have ended"),
        (Foreseeing, "causal", "changes nothing before that"),
        (Mutating, "untouched", "reads `request.priority` of row 0 and never sets it; it was "),
        (Greedy, "untouched", "reads `step.budget` and never sets it; it was "),
        (Raising, "ends", "ZeroDivisionError: division by zero (test_contract.py, line "),
        (Asking, "ends", "`schedule` ends; this one has called the step 5,000 times, at last `run` (test_contract"),
        (Early, "shifted", "1024 s later"),
        (Idle, "ends", "is never given tokens"),
        (Starving, "served", "is turned away, and told why"),
    ],
)
def test_who_breaks_a_promise_is_found_with_a_small_trace(
    policy: Callable[[], Policy], promise: str, sentence: str
) -> None:
    breach = hold_to(promises[promise], Subject("broken", policy), examples=200)
    assert breach is not None
    assert sentence in str(breach.fault)
    assert small(breach), breach.trial


def test_a_smaller_trace_is_not_one_whose_lengths_are_predicted() -> None:
    breach = hold_to(promises["blind"], Subject("broken", Leaking), examples=200)
    assert breach is not None
    assert breach.trial.predictor == "max_tokens"


def test_the_step_at_which_it_broke_is_known() -> None:
    breach: Any = hold_to(promises["ends"], Subject("broken", Raising), examples=100)
    assert breach.fault.step == "0, at 0 s"
    assert breach.of_ends


@dataclass
class Looping(Policy):
    """Turns round and round, and asks nobody."""

    def schedule(self, step: Step) -> None:
        while list(step.waiting):
            pass


def test_a_loop_that_asks_nothing_of_the_step_is_found_by_the_clock() -> None:
    breach: Any = hold_to(promises["ends"], Subject("loops", Looping, seconds=0.5), examples=1, smallest=of_no_use)
    assert "`schedule` returns; this replay has computed for 0.5 s (test_contract.py, line " in str(breach.fault)


def of_no_use(fault: Broken) -> bool:
    return False


def test_a_seed_draws_the_same_trials_and_another_draws_others() -> None:
    drawn: dict[int, list[Trial]] = {}
    for place, seed in enumerate((3, 3, 4)):
        trials = drawn.setdefault(place, [])
        promise = replace(promises["ends"], check=lambda subject, trial, trials=trials: trials.append(trial))
        assert hold_to(promise, Subject("fifo", policies["fifo"]), examples=30, seed=seed) is None
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
    assert sum(len(trial.case.arrivals) > 5 for trial in drawn[0]) > 8, "not only small ones"
    assert {trial.mode[0] for trial in drawn[0]} == set(modes)
    assert {trial.predictor for trial in drawn[0]} == {"oracle", "max_tokens", "user_mean", "history", "noisy"}

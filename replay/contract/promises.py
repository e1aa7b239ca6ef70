"""What every policy promises, each a function that raises Broken where a trial shows otherwise.

A promise is named for what is kept; the first line of its docstring says it to whoever reads `replay policy check`. A
policy whose rule breaks one on purpose says so in `breaks`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random

from hypothesis import strategies as st

from replay.contract.alike import alike, alike_before, shifted_back
from replay.contract.cases import MODES, PLAIN, Engine
from replay.contract.checks import check_outcome
from replay.contract.circumstances import other_circumstances
from replay.contract.expect import broken, expect, suits
from replay.contract.trials import Subject, Trial, run, trials
from replay.executors.interface import CostModel
from replay.predictors import predictors
from replay.replayer import Replayer

CONTINUOUS = [mode for mode in MODES if mode[0] == "continuous"]
NOT_STATIC = [mode for mode in MODES if mode[0] != "static"]
LATE = 10.0  # seconds, long after all others have ended
TICKS = 512  # to a second: such times are exact in binary and in nanoseconds, so that nothing is rounded
EXACT_MODES = [(name, settings | ({"max_wait_ms": 15.625} if name == "dynamic" else {})) for name, settings in MODES]
EXACT_COST = CostModel(fixed=8 / TICKS, prefill=1 / TICKS, decode=2 / TICKS)
SHIFT = 1024.0  # seconds


@dataclass(frozen=True)
class Promise:
    """`check` looks at one trial, drawn from `trials`."""

    name: str
    sentence: str
    check: Callable[[Subject, Trial], None]
    trials: st.SearchStrategy[Trial]


promises: dict[str, Promise] = {}
Check = Callable[[Subject, Trial], None]


def promise(name: str, drawn: st.SearchStrategy[Trial]) -> Callable[[Check], Check]:
    def keep(check: Check) -> Check:
        assert check.__doc__, "a promise says what it is"
        promises[name] = Promise(name, check.__doc__.splitlines()[0], check, drawn)
        return check

    return keep


@promise("ends", trials())
def every_replay_ends(subject: Subject, trial: Trial) -> None:
    """The policy's code raises nothing, and every replay comes to its end."""
    run(subject, trial, lax=True)


@promise("served", trials())
def everybody_is_served(subject: Subject, trial: Trial) -> None:
    """Slots, blocks and tokens add up at every step, and everybody gets each token once, or is told why not.

    In every mode, with time-outs and closed-loop sessions, and on every engine: with a prefix cache, host memory and
    overlapping steps, where every answer must be the one that the request alone would get.
    """
    check_outcome(trial.case, run(subject, trial))


@promise("untouched", trials())
def requests_are_only_read(subject: Subject, trial: Trial) -> None:
    """The policy sets nothing of a request but its `memory`, and nothing of a step but through its methods."""
    run(subject, trial, guarded=True, lax=True)


@promise("repeatable", trials())
def the_same_seed_gives_the_same_bytes(subject: Subject, trial: Trial) -> None:
    """The same seed gives the same replay: no clock, no chance but `step.random`, nothing left of an earlier replay."""
    one = run(subject, trial, lax=True)
    with other_circumstances(subject.make()):
        other = run(subject, trial, lax=True)
    alike(one, other, "the same seed gives the same replay; the second one is another")


@promise("causal", trials(limited=False, modes=NOT_STATIC))
def the_past_does_not_change(subject: Subject, trial: Trial) -> None:
    """What happened before a request arrives does not depend on it (static mode waits for it, and may)."""
    before = run(subject, trial, lax=True)
    arrival = LATE if trial.chance % 2 else trial.chance / 2000
    later = deepcopy(trial)
    later.case.add(arrival, prompt=3, output=2)
    after = run(subject, later, lax=True)
    alike_before(arrival, before, after, f"a request that comes at {arrival:g} s changes nothing before that")


@promise("blind", trials(limited=False, predictors=["max_tokens"]))
def lengths_are_not_known_beforehand(subject: Subject, trial: Trial) -> None:
    """Where nothing is predicted, how long an answer will be changes nothing before it ends."""
    suits(predictors[trial.predictor].knows == "nothing")
    case = deepcopy(trial.case)
    row, more = trial.chance % len(case.outputs), 1 + trial.chance % 7
    case.declared[row] = max(case.declared[row], case.outputs[row] + more)
    suits(case.prompts[row] + case.outputs[row] + more <= case.blocks * case.block_size)
    longer = replace(trial, case=deepcopy(case))
    longer.case.outputs[row] += more
    short, long = run(subject, replace(trial, case=case), lax=True), run(subject, longer, lax=True)
    end = short.column("last_token")[row]
    tokens = "token" if more == 1 else "tokens"
    what = f"that the answer of row {row} has {more} {tokens} more changes nothing before it would have ended"
    alike_before(LATE if end is None else end, short, long, what, inclusive=False)


@promise("busy", trials(limited=False, modes=CONTINUOUS, engine=st.builds(Engine, st.booleans(), st.just(0))))
def nobody_is_left_out_for_nothing(subject: Subject, trial: Trial) -> None:
    """While somebody waits the engine computes, and who is left waiting was refused something (or `step.withhold`)."""
    replayed = run(subject, trial, lax=True)
    end = 0.0
    for step in replayed.steps.iter_rows(named=True):
        at = f"{step['step']}, at {step['start']:g} s"
        if step["bound"] == "nothing" and step["waiting"]:
            broken(f"{step['waiting']} wait, and nothing was refused to anybody", at)
        for one in replayed.objects:
            came = max(end, one.submitted or 0.0)
            if one.submitted is not None and came < step["start"] and (one.ended is None or one.ended > came):
                sentence = f"row {one.row} is there, and the engine computes nothing from {came:g} s on"
                broken(sentence, at)
        end = step["end"]


@promise("gone", trials(limited=True))
def clients_may_go_away(subject: Subject, trial: Trial) -> None:
    """Clients that go away leave every slot and block behind, and the others are served."""
    random = Random(trial.chance)

    def leave(replayer: Replayer, now: float) -> None:
        """One of those who wait or run goes, now and then, unless a step under way has to do with it."""
        scheduler = replayer.scheduler
        here = [*scheduler.state.waiting.values(), *scheduler.state.resident.values()]
        if here and random.random() < 0.2:
            gone = random.choice(here)
            over = gone.status in ("cancelled", "timed_out")  # and held as padding
            cancelled = scheduler.cancel(gone, now, reason="client gone")
            expect(cancelled or over or trial.engine.overlap, f"row {gone.row} can go")
            scheduler.check_integrity()

    check_outcome(trial.case, run(subject, trial, turn=leave), leave=True)


@promise("cache", trials(modes=CONTINUOUS, engine=st.just(PLAIN)))
def an_idle_cache_changes_nothing(subject: Subject, trial: Trial) -> None:
    """Where no two prompts begin alike, a prefix cache changes nothing."""
    roomy = replace(trial, case=deepcopy(trial.case))
    roomy.case.alike = [0] * len(roomy.case.alike)
    roomy.case.blocks = 400
    without = run(subject, roomy, lax=True)
    suits(not any(without.column("evictions")))  # who was evicted, for its slot, finds its own blocks again
    cached = run(subject, replace(roomy, engine=Engine(prefix_cache=True)), lax=True)
    alike(without, cached, "a prefix cache changes nothing where no prompts are alike", ["cached_tokens"])
    expect(not any(cached.column("cached_tokens")), "nothing is found in the cache where no prompts are alike")


@promise("names", trials())
def names_do_not_matter(subject: Subject, trial: Trial) -> None:
    """Who is who does not matter: with other names of users, sessions and requests, the same happens."""
    rows = trial.case.rows()
    for one in rows:
        one.request_id = f"{'zyxwvutsrq'[one.row % 10]}{one.row}"
        one.user = None if one.user is None else OTHER_NAMES[one.user]
        one.session = None if one.session is None else OTHER_NAMES[one.session]
    known, renamed = run(subject, trial, lax=True), run(subject, trial, rows=rows, lax=True)
    alike(known, renamed, "other names change nothing", ["request_id", "user", "session"])


OTHER_NAMES = {"ada": "lin", "grace": "barbara", "s": "v", "t": "u"}


@promise("shifted", trials(limited=False, modes=EXACT_MODES, engine=st.just(PLAIN), ticks=TICKS))
def when_it_begins_does_not_matter(subject: Subject, trial: Trial) -> None:
    """When a trace begins does not matter: with every arrival later by as much, all times are later by as much."""
    early = run(subject, trial, cost=EXACT_COST, lax=True)
    later = deepcopy(trial)
    later.case.arrivals = [arrival + SHIFT for arrival in later.case.arrivals]
    late = shifted_back(run(subject, later, cost=EXACT_COST, lax=True), SHIFT)
    alike(early, late, f"the same trace {SHIFT:g} s later gives the same, {SHIFT:g} s later")

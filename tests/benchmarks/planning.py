"""What one plan costs under each registered policy, by how many wait; nothing is computed.

Requests are of many users, sizes, priorities, deadlines and sessions, prompts share prefixes, and the prefix cache is
on, so that every policy has what it goes by. Two kinds of steps are timed: at rest, with all slots taken, and with one
request gone and one come. Processor time, medians; of a policy whose step is slow, of as few as three.

python tests/benchmarks/planning.py
python tests/benchmarks/planning.py --policy fair --waiting 100000 --users 100000
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from statistics import median

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.executors.interface import CostModel
from replay.pool import KVPool
from replay.predictors import predictors
from replay.records import Records
from replay.request import Request
from replay.scheduler import Limits, Ordered, PerUser, Scheduler, modes, policies

PROMPT, ANSWER, BLOCK = 64, 2000, 16  # tokens; answers outlast the measurement
ALIKE = 8  # requests that begin with the same two blocks
WARM_UP, STEPS, LEAST = 6, 40, 3
SECONDS = 1.0  # processor time for the steps of one kind, unless fewer than the least were timed
STEP = 0.02  # seconds from a step to the next, on the scheduler's clock


@dataclass(slots=True)
class Cost:
    """Milliseconds of a plan: with nobody gone, with one gone and one come, and of the books of a step. None: no such
    step was met."""

    rest: float | None
    change: float | None
    books: float | None


def request(row: int, users: int, now: float = 0.0) -> Request:
    """A request that comes at `now`."""
    first = 10_000_000 + 10 * (row // ALIKE)  # the name of the blocks that it shares
    own = 1_000_000_000 + 10 * row
    return Request(
        row,
        str(row),
        now,
        PROMPT,
        ANSWER + 700,
        user=f"user {row % users}",
        due=now,
        urgency=row % 3,
        deadline=1e6 + row % 1000,
        session=f"session {row // 4}",
        turn=row % 4,
        prefix_hashes=(first, first + 1),
        block_keys=[first, first + 1, own, own + 1],
    )


def lengths(rows: int) -> list[int]:
    """Answers of many lengths, none of which ends in the measurement."""
    return [ANSWER + row * 7919 % 701 for row in range(rows)]


def measure(policy: str, running: int, waiting: int, users: int) -> Cost:
    """The medians for one policy."""
    total = running + waiting + 2 * (WARM_UP + STEPS)
    records = Records()
    scheduler = Scheduler(
        policy=policies[policy](),
        mode=modes["continuous"](max_running=running, token_budget=running * PROMPT),
        pool=KVPool(2 * running * (PROMPT + ANSWER + 700) // BLOCK, BLOCK, prefix_cache=True),
        output_tokens=lengths(total),
        predictor=predictors["oracle"](),
        cost=CostModel(fixed=0.01),
        records=records,
        limits=Limits(max_waiting=total),
    )
    rows = [request(row, users) for row in range(running + waiting)]
    books: list[float] = []
    now = 0.0

    def step(arrivals: list[Request]) -> tuple[float, bool]:
        """Seconds of the next plan, and whether it admitted anybody."""
        nonlocal now
        now += STEP
        before = {one.row for one in scheduler.state.resident.values()}
        begun = time.process_time()
        batch = scheduler.plan(now, arrivals)
        planned = time.process_time()
        admits = not scheduler.state.resident.keys() <= before
        if batch is not None:
            noted = time.process_time()
            scheduler.advance(batch)
            scheduler.complete(batch, now, now + STEP / 2)
            books.append(time.process_time() - noted)
        return planned - begun, admits

    step(rows)
    found: dict[bool, list[float]] = {}
    row = len(rows)
    for change in (False, True):
        times: list[float] = []
        begun = time.process_time()
        for number in range(WARM_UP + STEPS):
            arrivals = []
            if change:
                resident = scheduler.state.resident
                gone = next((one for one in resident.values() if one.state == "running"), None)
                if gone is not None:
                    scheduler.cancel(gone, now)
                arrivals = [request(row, users, now)]
                row += 1
            seconds, admits = step(arrivals)
            if number >= min(WARM_UP, LEAST) and admits == change:
                times.append(seconds)
            if time.process_time() - begun > SECONDS and (len(times) >= LEAST or number >= 2 * LEAST):
                break
        found[change] = times
    rest, changed, booked = (1000 * median(each) if each else None for each in (found[False], found[True], books))
    return Cost(rest, changed, booked)


def key_of(policy: str) -> str:
    """Whether keys of waiting requests are kept, or asked for at every step; or that the policy has an order or a loop
    of its own, which may do either."""
    entry = policies[policy]
    if not hasattr(entry, "dynamic"):
        return "own loop"
    if entry.dynamic:
        return "dynamic"
    owner = next((base for base in entry.__mro__ if "order" in base.__dict__), None)
    return "static" if owner in (None, Ordered, PerUser) else "own order"


def text(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds:.2f}" if milliseconds < 10 else f"{milliseconds:,.0f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", action="append", choices=sorted(policies), help="only this one; repeatable")
    parser.add_argument("--running", type=int, default=64)
    parser.add_argument("--waiting", type=int, nargs="+", default=[10, 100, 1_000, 10_000, 100_000])
    parser.add_argument("--users", type=int, default=10_000, help="no more than wait")
    given = parser.parse_args()
    heads = [f"{size:,}" for size in given.waiting]
    print(
        "| policy | key | "
        + " | ".join([f"rest, {head}" for head in heads] + [f"change, {head}" for head in heads])
        + " |"
    )
    print("|---|---|" + "---:|" * (2 * len(heads)))
    for name in given.policy or policies:
        costs = [measure(name, given.running, size, max(1, min(given.users, size))) for size in given.waiting]
        figures = [text(cost.rest) for cost in costs] + [text(cost.change) for cost in costs]
        print(f"| `{name}` | {key_of(name)} | " + " | ".join(figures) + " |", flush=True)

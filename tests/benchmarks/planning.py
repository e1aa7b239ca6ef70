"""What one plan costs, and the books of its step, with many running and more waiting; nothing is computed.

python tests/benchmarks/planning.py --running 256 --waiting 10000 --prefix-cache
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import policies as _registered  # noqa: F401  # importing it registers every policy
from replay.executors.interface import CostModel
from replay.pool import KVPool
from replay.predictors import predictors
from replay.records import Records
from replay.request import Request
from replay.scheduler import Limits, Scheduler, modes, policies

PROMPT, ANSWER, BLOCK = 64, 1000, 16  # tokens; answers outlast the measurement
WARM_UP, STEPS = 20, 60


def measure(policy: str, running: int, waiting: int, *, prefix_cache: bool) -> tuple[float, float]:
    """Median seconds of a plan, and of what is counted and written of its step."""
    rows = [
        Request(row, str(row), 0.0, PROMPT, ANSWER, user=f"user {row % 50}", urgency=row % 3)
        for row in range(running + waiting)
    ]
    if prefix_cache:
        for request in rows:
            request.block_keys = [1000 * request.row + index for index in range(PROMPT // BLOCK)]
    scheduler = Scheduler(
        policy=policies[policy](),
        mode=modes["continuous"](max_running=running, token_budget=running * PROMPT),
        pool=KVPool(running * (PROMPT + ANSWER), BLOCK, prefix_cache=prefix_cache),
        output_tokens=[ANSWER] * len(rows),
        predictor=predictors["oracle"](),
        cost=CostModel(fixed=0.01),
        records=Records(),
        limits=Limits(max_waiting=len(rows)),
    )
    plans, books = [], []
    for step in range(WARM_UP + STEPS):
        begun = time.process_time()
        batch = scheduler.plan(float(step), rows)
        planned = time.process_time()
        assert batch is not None, "somebody always runs"
        scheduler.advance(batch)
        scheduler.complete(batch, float(step), step + 0.5)
        rows = []
        plans.append(planned - begun)
        books.append(time.process_time() - planned)
    return median(plans[WARM_UP:]), median(books[WARM_UP:])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--running", type=int, default=256)
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--prefix-cache", action="store_true")
    given = parser.parse_args()
    for name in policies:
        seconds = measure(name, given.running, given.waiting, prefix_cache=given.prefix_cache)
        print(f"{name:10} plan {1000 * seconds[0]:.2f} ms, books {1000 * seconds[1]:.2f} ms")

"""How often the report would claim a difference that is not there, and how often it finds one that is.

Tables of policies are drawn that all do the same: each request's latency has a wait that lasts over its neighbours
(an autoregressive process along arrivals), a part of its user under each policy, a part of its own, and a part that a
run has as a whole. Two fifths of what a policy's requests wait is that policy's alone. With an effect, every policy but
the base is slower by so much. Run it with:

    python tests/benchmarks/false_claims.py --tables 400
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import click
import numpy as np

from replay.metrics.resampling import (
    Floats,
    block_draws,
    block_starts,
    by_user,
    sample,
    user_and_block_errors,
    user_draws,
    user_times,
)
from replay.metrics.simultaneous import RunNoise, widths
from replay.metrics.slow_waves import growing, wave_errors

MEAN = 1.0  # seconds


@dataclass(frozen=True)
class World:
    """What the requests of a table are like."""

    name: str
    requests: int = 1000
    policies: int = 5
    lasting: float = 0.9  # of the wait, from one request to the next
    users: float = 0.0  # standard deviation of a user's own part under a policy
    runs: float = 0.0  # standard deviation of what a run has as a whole
    repeats: int = 1


WORLDS = [
    World("independent requests", lasting=0.0),
    World("a queue (0.8 of the wait lasts)", lasting=0.8),
    World("a queue (0.9)"),
    World("a long queue (0.95)", lasting=0.95),
    World("a queue, 200 requests", requests=200),
    World("a queue, 40 requests", requests=40),
    World("a queue, 40 users with a part of their own", users=0.3),
    World("a queue, 16 policies in 3 modes", policies=48),
    World("a queue, runs differ, 2 repeats", runs=0.05, repeats=2),
    World("a queue, runs differ, 3 repeats", runs=0.05, repeats=3),
]
USERS = 40


def drawn(world: World, random: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Latencies (a row a request, a column an arm, the base first), the mean of each repeat, and each row's user."""
    n, arms = world.requests, world.policies + 1
    user = np.minimum(random.geometric(0.06, n) - 1, USERS - 1)
    shape = (n, arms, world.repeats)
    own = (
        random.exponential(0.3, shape)
        + 0.6 * _waits(world, random, (n, arms, 1))
        + 0.3 * random.exponential(1, (n, 1, 1))
    )
    own += world.users * random.standard_normal((USERS, arms, 1))[user]
    own += world.runs * random.standard_normal((1, arms, world.repeats))
    own *= MEAN / 1.2
    return own.mean(axis=2), own.mean(axis=0), user


def _waits(world: World, random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Waits of unit mean: the square of a process that remembers, as many as there are arms, half of it common."""
    rho = math.sqrt(world.lasting)
    noise = math.sqrt(0.4) * random.standard_normal(shape) + math.sqrt(0.6) * random.standard_normal((shape[0], 1, 1))
    level, found = noise[0], np.empty(shape)
    for row in range(shape[0]):
        level = rho * level + math.sqrt(1 - rho**2) * noise[row]
        found[row] = level
    return found**2


def claims(latencies: Floats, repeats: Floats, user: Floats, seed: int) -> dict[str, Floats]:
    """Which of the comparisons with the base would be claimed, by each rule."""
    n, arms = latencies.shape
    found = sample(latencies[:, 1:] - latencies[:, :1])
    number, count = np.arange(1, arms), repeats.shape[1]
    variance, freedom = np.full(arms, np.nan), np.zeros(arms)
    if count > 1:
        each = repeats.var(axis=1, ddof=1)
        variance, freedom = np.maximum(each, each.mean()) / count, np.full(arms, float(arms * (count - 1)))
    noise = RunNoise(variance, freedom, np.zeros(arms - 1, np.int64), number)
    starts = block_starts(n, seed)
    rising = growing(sample(latencies))
    errors = wave_errors(found, rising[1:] | rising[0])
    blocks = widths(errors, block_draws(found, starts), noise, seed)
    own, family = blocks.own, blocks.family
    users = by_user(user.astype(np.int64), np.bincount(user.astype(int), minlength=USERS) > 0)
    if users is not None and len(users.first) == len(users.named):
        over = widths(
            user_and_block_errors(found, users, errors), user_draws(found, users, *user_times(users, seed)), noise, seed
        )
        own, family = np.fmax(own, over.own), np.fmax(family, over.family)
    return {
        "before": _percentiles(latencies[:, 1:] - latencies[:, :1], starts),
        "alone": np.abs(found.means) > own,
        "family": np.abs(found.means) > family,
    }


def _percentiles(differences: Floats, starts: Floats) -> Floats:
    """The plain rule: percentiles of block means, a comparison at a time, no word of users, repeats or the table."""
    n = len(differences)
    length = math.ceil(math.sqrt(n))
    ring = np.cumsum(
        np.concatenate([np.zeros((1, differences.shape[1])), differences, differences[: length - 1]]), axis=0
    )
    sums = ring[length:] - ring[:-length]
    means = sum(sums[block] for block in starts.T) / (starts.shape[1] * length)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return (low > 0) | (high < 0)


@click.command()
@click.option("--tables", default=400, help="Tables drawn of each kind.")
@click.option("--effect", default=0.2, help="How much slower every policy is, of the mean, where power is measured.")
def main(tables: int, effect: float) -> None:
    """Print a Markdown table: the share of tables with a false claim, by each rule, and the power of the last."""
    print(f"| requests are | plain percentiles | corrected for all but the table | the report's | finds {effect:.0%} |")
    print("|---|---:|---:|---:|---:|")
    for world in WORLDS:
        random = np.random.default_rng(1)
        false, found = dict.fromkeys(("before", "alone", "family"), 0), 0.0
        for table in range(tables):
            latencies, repeats, user = drawn(world, random)
            told = claims(latencies, repeats, user, table)
            for rule in false:
                false[rule] += bool(told[rule].any())
            latencies[:, 1:] += effect * MEAN
            found += float(claims(latencies, repeats, user, table)["family"].mean())
        shares = " | ".join(f"{100 * count / tables:.1f} %" for count in [*false.values(), found])
        print(f"| {world.name} | {shares} |", flush=True)


if __name__ == "__main__":
    main()

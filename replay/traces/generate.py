"""Generated traces: users with appetites, declared in a small TOML file, made into the same trace every time.

It measures nothing and copies nobody's traffic; a trace made here says in its history that it is generated. Draws are
from Python's own generator, a stream for each user and purpose, so that a change to one user, or to the rate, leaves
every other number as it was.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import accumulate, count, cycle
from operator import itemgetter
from pathlib import Path

import polars as pl

from replay.clock import NANOSECONDS
from replay.errors import ExperimentError
from replay.traces.canonical import Source, canonical_trace
from replay.traces.reading import sha256_of
from replay.traces.specification import TICK, Lengths, Phase, Spec, User, read_spec
from replay.traces.table import Trace


def generate_trace(path: str | Path) -> Trace:
    """The trace that a specification file describes; raises `ExperimentError` where the file does not describe one."""
    path = Path(path)
    spec = read_spec(path)
    prefixes = prefix_hashes(spec)
    rows = [row for user in spec.users for name in user.names for row in user_rows(spec, user, name, prefixes)]
    rows.sort(key=itemgetter("arrival_ns"))  # stable: ties stay in order of user
    if not rows:
        raise ExperimentError(f"{path}: no user has a request within the duration; raise a rate or the duration")
    source = Source(path, pl.DataFrame(rows, infer_schema_length=None), block_size=spec.block_size)
    trace = canonical_trace(path.stem, path, [source], sha256_of([path]))
    trace.history.append(
        f"generated from {path.name} (sha256 {trace.sha256[:16]}), seed {spec.seed}: not measured traffic"
    )
    return trace


def user_rows(spec: Spec, user: User, name: str, prefixes: dict[str, list[list[int]]]) -> Iterator[dict[str, object]]:
    """The requests of `user`, who goes by `name`, in order of arrival; `prefixes` has the hashes of each one's blocks.

    All turns of a session arrive with its first: whoever replays them waits for the answer to the one before.
    """
    lengths = random.Random(f"{spec.seed}/{name}/lengths")
    sessions = random.Random(f"{spec.seed}/{name}/sessions")
    shared = prefixes[user.prefix] if user.prefix is not None else [[]]
    for number, arrival in enumerate(arrivals(spec, user, name)):
        turns = draw(user.sessions.turns, sessions) if user.sessions else 1
        for turn in range(turns):
            own, output = draw(user.prompt, lengths), draw(user.output, lengths)
            carries = lengths.random() < user.prefix_share
            one_of = lengths.randrange(len(shared)) if len(shared) > 1 else 0
            hashes = shared[one_of] if carries else []
            yield {
                "arrival_ns": arrival,
                "request_id": f"{name}-{number}-{turn}" if user.sessions else f"{name}-{number}",
                "prompt_tokens": len(hashes) * spec.block_size + own,
                "output_tokens": output,
                "user": name,
                "session": f"{name}-{number}" if user.sessions else None,
                "turn": turn if user.sessions else None,
                "think_time_ms": user.sessions.think_ms if user.sessions else None,
                "priority": user.priority,
                "deadline_ms": user.deadline_ms,
                "slo": user.slo,
                "max_tokens": user.max_tokens,
                "prefix_hashes": hashes or None,
            }


def draw(lengths: Lengths, stream: random.Random) -> int:
    """One count."""
    if lengths.median is not None and lengths.most is not None:
        drawn = round(lengths.median * math.exp(lengths.spread * stream.gauss(0, 1)))
        return min(max(drawn, lengths.least), lengths.most)
    if lengths.uniform is not None:
        return stream.randint(*lengths.uniform)
    return stream.choice(lengths.choices) if lengths.choices is not None else lengths.largest


def prefix_hashes(spec: Spec) -> dict[str, list[list[int]]]:
    """The hashes of each copy's blocks, counted on from prefix to prefix, so that no two share one."""
    counter = count()

    def copy(blocks: int) -> list[int]:
        return [next(counter) for _ in range(blocks)]

    return {
        prefix.name: [copy(prefix.tokens // spec.block_size) for _ in range(prefix.copies)] for prefix in spec.prefixes
    }


def arrivals(spec: Spec, user: User, name: str) -> Iterator[int]:
    """Nanoseconds at which the user's requests (or sessions) arrive, by gamma-distributed gaps.

    With a `count`, the gaps (one more than requests) are stretched to fill the user's time, so a shorter duration is
    the same pattern, faster. Otherwise they follow each other until that time is over, and go by faster where more
    requests are to be expected: each gap is over when its share of a request has been.
    """
    stream = random.Random(f"{spec.seed}/{name}/arrivals")
    shape = 1 / user.burstiness**2
    stop = spec.duration if user.stop is None else min(user.stop, spec.duration)
    if user.count is not None:
        *times, end = accumulate(stream.gammavariate(shape, 1.0) for _ in range(user.count + 1))
        yield from (user.start + round(time / end * (stop - user.start) / TICK) * TICK for time in times)
        return
    phases = user.phases or [Phase(rate=user.rate or 0.0)]
    gaps = accumulate(stream.gammavariate(shape, 1 / shape) for _ in count())
    for time in crossings(phases, gaps, user.start, stop):
        yield round(time / TICK) * TICK


def crossings(phases: Sequence[Phase], expected: Iterator[float], start: int, stop: int) -> Iterator[float]:
    """When, between two instants, as many requests as each of `expected` are to be expected since `start`."""
    wanted, before, begin = next(expected), 0.0, float(start)
    for phase in cycle(phases):
        left = stop - begin
        lasts = left if phase.lasts is None else min(phase.lasts, left)
        full = phase.lasts or lasts
        slope = ((phase.rate if phase.rate_at_end is None else phase.rate_at_end) - phase.rate) / full  # a second each
        within = (phase.rate + slope * lasts / 2) * lasts / NANOSECONDS
        while wanted - before < within:
            yield begin + reached(wanted - before, phase.rate / NANOSECONDS, slope / NANOSECONDS)
            wanted = next(expected)
        before, begin = before + within, begin + lasts
        if begin >= stop:
            return


def reached(requests: float, rate: float, slope: float) -> float:
    """After how long so many requests are to be expected, at a rate that grows by `slope`: both by the nanosecond."""
    if slope == 0:
        return requests / rate
    return 2 * requests / (rate + math.sqrt(max(0.0, rate * rate + 2 * slope * requests)))

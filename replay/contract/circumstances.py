"""Other circumstances for a second replay: clocks that jump about, and other global chance.

A policy that looks at either does something else then. It does not know what a replay is.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SECOND = {"time": 1, "monotonic": 1, "perf_counter": 1, "process_time": 1}
CLOCKS = SECOND | {f"{name}_ns": 10**9 for name in SECOND}  # functions of `time`, and how much a second is of theirs
DAY = 86_400


@contextmanager
def other_circumstances(entry: object) -> Iterator[None]:
    """For whoever asks `time` and `random`, and for the names that the modules of `entry`'s classes have of clocks."""
    chance = random.getstate()
    units = {getattr(time, name): unit for name, unit in CLOCKS.items()}
    own = [sys.modules[kind.__module__] for kind in type(entry).__mro__ if kind.__module__ in sys.modules]
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    for names in (vars(time), *map(vars, own)):
        for name, value in list(names.items()):
            if isinstance(value, type(time.time)) and value in units:
                replaced.append((names, name, value))
                names[name] = _jumping(units[value])
    random.seed(DAY)
    try:
        yield
    finally:
        random.setstate(chance)
        for names, name, value in replaced:
            names[name] = value


def _jumping(unit: int) -> Callable[[], int]:
    instants = random.Random(unit)
    return lambda: unit * instants.randrange(DAY)

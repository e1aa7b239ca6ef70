"""Durations as people type them: "20m", "90s", "1.5h", "250ms", or a number of seconds; exact inside.

It knows nothing of traces. Inside, a duration is a whole number of nanoseconds.
"""

from __future__ import annotations

import re
from decimal import Decimal

from replay.clock import NANOSECONDS
from replay.errors import ExperimentError

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": NANOSECONDS, "m": 60 * NANOSECONDS, "h": 3_600 * NANOSECONDS}
PATTERN = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|ms|s|m|h)\s*")


def nanoseconds(duration: object, place: str) -> int:
    """Nanoseconds in a duration that was typed; `place` says where, for the sentence when it is none.

    Raises `ExperimentError`. Digits beyond the nanosecond are rounded.
    """
    if isinstance(duration, str) and (match := PATTERN.fullmatch(duration)):
        return round(Decimal(match[1]) * UNITS[match[2]])
    if isinstance(duration, int | float) and not isinstance(duration, bool) and 0 <= duration < float("inf"):
        return round(Decimal(str(duration)) * NANOSECONDS)
    raise ExperimentError(
        f'{place}: {duration!r} is not a duration; write "20m", "90s", "1.5h" or "250ms", or a number of seconds'
    )

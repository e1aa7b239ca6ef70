"""Durations as people type them: "20m", "90s", "1.5h", "1h30m", "2d", or a number of seconds; exact inside.

It knows nothing of traces. Inside, a duration is a whole number of nanoseconds.
"""

from __future__ import annotations

import re
from decimal import Decimal

from replay.clock import NANOSECONDS
from replay.errors import ExperimentError

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": NANOSECONDS, "m": 60 * NANOSECONDS, "h": 3_600 * NANOSECONDS}
UNITS["d"] = 24 * UNITS["h"]
PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|ms|s|m|h|d)\s*")
PATTERN = re.compile(rf"\s*(?:{PART.pattern})+")


def nanoseconds(duration: object, place: str) -> int:
    """Nanoseconds in a duration that was typed; `place` says where, for the sentence when it is none.

    Raises `ExperimentError`. Digits beyond the nanosecond are rounded.
    """
    if isinstance(duration, str) and PATTERN.fullmatch(duration):
        return round(sum(Decimal(count) * UNITS[unit] for count, unit in PART.findall(duration)))
    if isinstance(duration, int | float) and not isinstance(duration, bool) and 0 <= duration < float("inf"):
        return round(Decimal(str(duration)) * NANOSECONDS)
    raise ExperimentError(
        f'{place}: {duration!r} is not a duration; write "20m", "90s", "1.5h" or "250ms", or a number of seconds'
    )

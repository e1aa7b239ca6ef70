"""Counts and spans of time as people read them; it knows nothing of traces."""

from __future__ import annotations

from decimal import Decimal

from replay.clock import NANOSECONDS
from replay.traces.durations import UNITS


def counted(count: int, noun: str) -> str:
    """ "1 row", "1,024 rows"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def duration_text(span: int) -> str:
    """A span of nanoseconds: exact in seconds, and from two minutes on also rounded in a larger unit."""
    seconds = f"{Decimal(span) / NANOSECONDS:,.9f}".rstrip("0").rstrip(".") + " s"
    for size, unit in ((24 * UNITS["h"], "days"), (UNITS["h"], "h"), (UNITS["m"], "min")):
        if span >= 2 * size:
            return f"{seconds} ({span / size:.1f} {unit})"
    return seconds

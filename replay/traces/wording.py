"""Counts, spans of time and settings as people read them; it knows nothing of traces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from replay.clock import NANOSECONDS
from replay.traces.durations import UNITS

LONGEST = 60  # characters of somebody's name for something


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """ "1 row", "1,024 rows"; of a noun whose plural is another than with an s, both."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def named(name: str) -> str:
    """Somebody's name for something as a sentence has it: on one line, and short."""
    text = name if name.isprintable() else repr(name)[1:-1]
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def listed(names: Iterable[str], most: int | None = 20) -> str:
    """Names of columns or fields, the first of them if they are many."""
    shown = [named(name) for name in names]
    more = len(shown) - (most or len(shown))
    return ", ".join(shown[:most]) + (f" and {more:,} more" if more > 0 else "")


def duration_text(span: int) -> str:
    """A span of nanoseconds: exact in seconds, and from two minutes on also rounded in a larger unit."""
    seconds = f"{Decimal(span) / NANOSECONDS:,.9f}".rstrip("0").rstrip(".") + " s"
    for size, unit in ((24 * UNITS["h"], "days"), (UNITS["h"], "h"), (UNITS["m"], "min")):
        if span >= 2 * size:
            return f"{seconds} ({span / size:.1f} {unit})"
    return seconds


def toml_text(value: object) -> str:
    """A setting as TOML has it, on one line."""
    if isinstance(value, Mapping):
        keys = (key if re.fullmatch(r"[A-Za-z0-9_-]+", str(key)) else json.dumps(key) for key in value)
        return (
            f"{{ {', '.join(f'{key} = {toml_text(each)}' for key, each in zip(keys, value.values(), strict=True))} }}"
        )
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_text(each) for each in value)}]"
    if isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def skipped_text(skipped: dict[str, int]) -> str:
    """The skipped rows in words: "2 rows skipped (zero output tokens)"."""
    return ", ".join(f"{counted(rows, 'row')} skipped ({reason})" for reason, rows in skipped.items())

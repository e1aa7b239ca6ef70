"""Single instants in text, for formats that are read object by object; columns of them are `delimited`'s affair."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from replay.clock import NANOSECONDS

INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\s*(Z|[+-]\d\d:?\d\d)?")
A_TIME = "a time such as 2026-01-31T12:00:00.5Z, of the years 1678 to 2261"
LARGEST = 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def unix_nanoseconds(text: str) -> int | None:
    """Nanoseconds since 1970 of a time such as 2026-06-01T12:00:00.123456789Z; no zone is UTC.

    None if it is no time, or if 64 bits do not hold it.
    """
    found = INSTANT.fullmatch(text.strip())
    if found is None:
        return None
    date, time, fraction, zone = found.groups()
    try:
        instant = datetime.fromisoformat(f"{date}T{time}{zone or 'Z'}")
    except ValueError:
        return None
    nanoseconds = (instant - EPOCH) // timedelta(seconds=1) * NANOSECONDS + int((fraction or "").ljust(9, "0"))
    return nanoseconds if -LARGEST <= nanoseconds <= LARGEST else None

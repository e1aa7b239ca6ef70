"""Think times of sessions whose log says when each request came and when it was answered; it knows no format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from replay.clock import NANOSECONDS
from replay.traces.wording import counted

MILLISECOND = NANOSECONDS // 1_000


Spans = Sequence[tuple[int, int | None]]


def think_times(spans: Spans) -> list[float | None]:
    """Milliseconds between the end of the request before and each of a session's, in order of arrival, in nanoseconds.

    The first has none, and none is known after a request whose end is not. One that comes before the other has ended
    did not wait for it: its think time is 0.
    """
    found: list[float | None] = []
    before: int | None = None
    for arrival, end in spans:
        found.append(None if before is None else max(arrival - before, 0) / MILLISECOND)
        before = end
    return found


def overlap_notes(sessions: Iterable[Spans]) -> list[str]:
    """A remark on the requests that came before the one before was answered, if there are any."""
    count = sum(end is not None and arrival < end for spans in sessions for (_, end), (arrival, _) in pairwise(spans))
    return [f"{counted(count, 'turn')} begun before the one before had ended: a closed loop makes it wait"] * bool(
        count
    )

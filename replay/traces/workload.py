"""From a trace to a workload: fresh requests for one cell, in seconds, with what only the engine may know kept apart.

It knows the request; it does not know who replays it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from replay.clock import NANOSECONDS
from replay.request import Request, Workload
from replay.traces.table import Trace

PriorityOrder = Literal["larger-first", "smaller-first"]


def workload(trace: Trace, priority_order: PriorityOrder = "larger-first") -> Workload:
    """The trace's requests, new objects at each call.

    `max_tokens`, where a row declares none, is the largest output of the trace as it is now, so that nothing of the
    true length leaks. `urgency` is the priority, turned if smaller numbers are the urgent ones; without one it is 0.
    """
    largest: int = trace.frame["output_tokens"].max()  # type: ignore[assignment]  # Int64, and never empty
    sign = 1 if priority_order == "larger-first" else -1
    requests: list[Request] = []
    prompts: dict[int, str | Sequence[int]] = {}
    for row, entry in enumerate(trace.frame.iter_rows(named=True)):
        arrival = entry["arrival"] / NANOSECONDS
        deadline, priority = entry["deadline_ms"], entry["priority"]
        requests.append(
            Request(
                row=row,
                request_id=entry["request_id"],
                arrival=arrival,
                due=arrival,
                prompt_tokens=entry["prompt_tokens"],
                max_tokens=entry["max_tokens"] or largest,
                user=entry["user"],
                priority=priority,
                urgency=sign * (priority or 0),
                deadline=None if deadline is None else deadline / 1_000,
                slo=entry["slo"],
                session=entry["session"],
                turn=entry["turn"],
                think_time=(entry["think_time_ms"] or 0.0) / 1_000,
                prefix_hashes=tuple(entry["prefix_hashes"] or ()),
            )
        )
        content = entry["prompt_token_ids"] if entry["prompt_token_ids"] is not None else entry["prompt"]
        if content is not None:
            prompts[row] = content
    return Workload(requests, trace.frame["output_tokens"].to_list(), trace.block_size, trace.hash_scope, prompts)

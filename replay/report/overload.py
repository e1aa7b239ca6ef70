"""Whether requests came faster than a mode could serve them, so that its latencies tell the length of the trace.

The rule: of every policy and repeat, when the last request came (a) a tenth of all requests still waited, and more than
one batch of them where a mode waits for a batch to fill, and (b) it took over a fifth of the arrival span until the
last was admitted. Both grow with the load alone: at k times what a mode serves, 1 - 1/k of the requests wait then, and
they wait for up to k - 1 spans. A late burst looks the same. It is not asked of requests that all come at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.notation import duration, enumerate_words, span
from replay.report.findings import Findings

WAITING = 0.1
"""Share of the requests that still wait when the last one comes."""
DRAIN = 0.2
"""Share of the arrival span that the drain lasts."""


def told_of_overload(found: Sequence[Arm], findings: Findings) -> list[str]:
    """One sentence for each mode that was overloaded, whatever the policy."""
    modes: dict[str, dict[str, list[Arm]]] = {}
    for arm in found:
        modes.setdefault(arm.mode, {}).setdefault(arm.setting, []).append(arm)
    told = []
    for mode, settings in modes.items():
        drains = {setting: drain for setting, arms in settings.items() if (drain := _drains(findings, arms))}
        if not drains:
            continue
        ends = [end for drain in drains.values() for end in drain]
        short, long = min(ends), max(ends)
        took = duration(short) if duration(short) == duration(long) else span(short, long)
        names = enumerate_words([f"**{setting}**" for setting in drains])
        if len(drains) == len(settings) > 1:
            names = f"**{mode}**, at every setting"
        told.append(
            f"{names}: requests come faster than it serves them (the queue drained for {took} after the last arrival): "
            "its latencies measure how long the trace is; see a lower `speed`."
        )
    return told


def _drains(findings: Findings, arms: Sequence[Arm]) -> list[float]:
    """The drain of every cell; none unless every one was overloaded."""
    drains = [_drain(findings, cell.name, arm) for arm in arms for cell in arm.cells]
    known = [drain for drain in drains if drain is not None]
    return known if len(known) == len(drains) else []


def _drain(findings: Findings, cell: str, arm: Arm) -> float | None:
    """Seconds from the last moment at which a request was due to the last admission; None without an overload."""
    rows = findings.measured.requests.filter(pl.col("cell") == cell)
    due, admitted = rows["due"].to_numpy(), (rows["due"] + rows["queue_wait"]).drop_nulls().to_numpy()
    if not len(admitted):
        return None
    last = due.max()
    gave_up = rows.select(((pl.col("status") == "timed_out") & pl.col("queue_wait").is_null()).sum()).item()
    waiting = int((admitted > last).sum()) + int(gave_up)  # whoever timed out in the queue had waited as well
    shown = next(found for found in arm.cells if found.name == cell)
    batch = (shown.slots or 0) if shown.padded else 0
    span_of_arrivals, drain = float(last - due.min()), float(admitted.max() - last)
    long = drain > DRAIN * span_of_arrivals > 0
    return drain if long and waiting > max(WAITING * len(rows), batch) else None

"""Whether requests came faster than a mode could serve them, so that its latencies tell the length of the trace.

The rule: of every policy and repeat, when the last request came (a) a tenth of all requests still waited, and more than
one batch of them where a mode waits for a batch to fill, and (b) it took over a fifth of the arrival span until the
last was admitted. Both grow with the load alone: at k times what a mode serves, 1 - 1/k of the requests wait then, and
they wait for up to k - 1 spans. A late burst looks the same. It is not asked of requests that all come at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.notation import duration, enumerate_words, span
from replay.report.findings import Findings

WAITING = 0.1
"""Share of the requests that still wait when the last one comes."""
DRAIN = 0.2
"""Share of the arrival span that the drain lasts."""


def told_of_overload(found: Sequence[Arm], findings: Findings) -> list[str]:
    """One sentence on all modes that were overloaded, whatever the policy, and the load that one of them carries."""
    modes: dict[str, dict[str, list[Arm]]] = {}
    for arm in found:
        modes.setdefault(arm.mode, {}).setdefault(arm.setting, []).append(arm)
    names: list[str] = []
    drains: list[float] = []
    carried: dict[str, float] = {}
    for mode, settings in modes.items():
        found_of = {setting: drains_of for setting, arms in settings.items() if (drains_of := _drains(findings, arms))}
        every = len(found_of) == len(settings) > 1
        names += [f"**{mode}** at every setting"] if every else [f"**{setting}**" for setting in found_of]
        drains += [each.drain for drains_of in found_of.values() for each in drains_of]
        carried |= {setting: min(each.carried for each in drains_of) for setting, drains_of in found_of.items()}
    if not drains:
        return []
    short, long = min(drains), max(drains)
    took = duration(short) if duration(short) == duration(long) else span(short, long)
    best = max(carried, key=lambda setting: carried[setting])
    load = max(0.01, math.floor(100 * carried[best]) / 100)
    return [
        f"Overloaded: requests come faster than they are served in {enumerate_words(names)} (the queue drained for "
        f"{took} after the last arrival), so latencies there measure how long the trace is; "
        f"**{best}** carries about {load:g} of this load: try `loads = [{load:g}, 1.0]`."
    ]


@dataclass(frozen=True, slots=True)
class Drain:
    """Seconds from the last moment at which a request was due to the last admission; and what share of the load would
    have let the queue drain by then."""

    drain: float
    carried: float


def _drains(findings: Findings, arms: Sequence[Arm]) -> list[Drain]:
    """The drain of every cell; none unless every one was overloaded."""
    drains = [_drain(findings, cell.name, arm) for arm in arms for cell in arm.cells]
    known = [drain for drain in drains if drain is not None]
    return known if len(known) == len(drains) else []


def _drain(findings: Findings, cell: str, arm: Arm) -> Drain | None:
    """None without an overload."""
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
    if not long or waiting <= max(WAITING * len(rows), batch):
        return None
    return Drain(drain, span_of_arrivals / (span_of_arrivals + drain))

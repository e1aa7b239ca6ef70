"""What a reader must know before any number: failures, missing parts, a simulated clock, invalid cells, noise."""

from __future__ import annotations

import polars as pl

from replay.metrics.arms import Arm
from replay.metrics.notation import duration, enumerate_words, number, percent, plural, several
from replay.metrics.paired import STEADY
from replay.report.findings import Findings


def health(findings: Findings) -> list[str]:
    """What went wrong, and whether the clock was real."""
    run, sentences = findings.run, []
    requests, completed = findings.total("requests"), findings.total("completed")
    if not findings.arms:
        sentences.append("No cell left any row: there is nothing to report.")
    elif completed < requests:
        sentences.append(f"{completed:,} of {requests:,} requests completed{_whereabouts(findings)}.")
    sentences += [f"Cell {cell.name} failed: {cell.error.rstrip('.')}." for cell in run.cells if cell.error]
    if run.partial:
        done = sum(not cell.partial for cell in run.cells)
        state = "" if run.status == "complete" else f"the run is {run.status}, and "
        sentences.append(f"This report is partial: {state}{done} of {plural(len(run.cells), 'cell')} ran to the end.")
    sentences += _left_out(findings)
    if findings.simulated:
        sentences.append("Simulated: all times come from a cost model on a virtual clock, not from hardware.")
    if invalid := [cell for cell in run.cells if not cell.valid]:
        names = several([cell.name for cell in invalid])
        reason = invalid[0].invalid_reason or "requests were submitted too late"
        one = len(invalid) == 1
        sentences.append(
            (f"{names} is invalid: {reason}." if one else f"{names} are invalid ({invalid[0].name}: {reason}).")
            + (" Run again with nothing else on the machine." if reason.startswith("lag ") else "")
        )
    return sentences


def _whereabouts(findings: Findings) -> str:
    """How the others ended, and the most common reason; that of a skipped turn is the one before it."""
    statuses = ("rejected", "timed_out", "cancelled", "failed", "skipped", "unfinished")
    counts = [f"{total:,} {status.replace('_', ' ')}" for status in statuses if (total := findings.total(status))]
    reasons = [
        cell.table("requests").filter(~pl.col("status").is_in(["completed", "skipped"])).select("reason")
        for arm in findings.arms
        for cell in arm.cells
    ]
    common = pl.concat(reasons).drop_nulls().group_by("reason").len().sort("len", "reason", descending=[True, False])
    why = f"; most often because: {common['reason'][0]}" if len(common) else ""
    return f" ({', '.join(counts)}{why})"


def _left_out(findings: Findings) -> list[str]:
    """The policies that no comparison can name, mode by mode, where others of the run can be compared."""
    if not findings.compared:
        return []
    compared = {(arm.trace, arm.setting, arm.policy) for arm in findings.compared}
    missing: dict[tuple[str, str], list[str]] = {}
    for cell in findings.run.cells:
        known = missing.setdefault((cell.trace, cell.setting), [])
        if (cell.trace, cell.setting, cell.named_policy) not in compared and cell.named_policy not in known:
            known.append(cell.named_policy)
    told = []
    for (trace, setting), names in missing.items():
        if names:
            place = f"{trace}, {setting}" if len(findings.traces) > 1 else setting
            who = enumerate_words([f"**{name}**" for name in names])
            ends = "its end: it is" if len(names) == 1 else "their ends: they are"
            told.append(f"{who} did not run to {ends} left out of the comparisons in {place}.")
    return told


def steadiness(findings: Findings) -> list[str]:
    """Whether the machine kept one speed, where it did not: repeat by repeat, for their mean would hide it."""
    paces = {
        f"{arm.label}, repeat {repeat}" if len(arm.cells) > 1 else arm.label: pace
        for arm in findings.arms
        for repeat, pace in enumerate(findings.values.repeats(arm, "pace", "value"), start=1)
    }
    if not paces or max(paces.values()) <= STEADY * min(paces.values()):
        return []
    slow, fast = (choose(paces, key=lambda label: paces[label]) for choose in (max, min))
    return [
        f"The machine did not keep one speed: steps took {number(paces[fast])} times what the engine's cost model "
        f"gives them in {fast}, and {number(paces[slow])} times in {slow}. "
        "Differences that this could have made are not claimed."
    ]


def certainty(findings: Findings) -> str:
    """Where the sureness comes from."""
    simulated = all(cell.simulated for cell in findings.run.recorded)
    exact = " Simulated figures are exact for this trace; intervals are about other requests like these."
    if findings.repeated:
        noise = f"Differences no larger than those between two runs of one cell are not claimed{_noise(findings)}."
        return noise + (exact if simulated else "")
    if simulated:
        return (
            "Each cell was run once: a simulated replay repeats exactly, so there is no run-to-run noise, "
            "and intervals are about other requests like these."
        )
    return (
        "Each cell was run once: run-to-run noise was not measured, so a small difference may be noise; "
        "`noise_floor = true` measures it with one more cell in each mode."
    )


def _noise(findings: Findings) -> str:
    """`; the largest are 40 ms (2 %) in mean TTFT, of static, fifo, and 55 ms (1 %) in mean end-to-end time, of ...`"""
    told, largest = [], 0.0
    for metric, name in (("ttft", "mean TTFT"), ("e2e", "mean end-to-end time")):
        spreads: dict[Arm, tuple[float, float]] = {}
        for arm in findings.arms:
            means = findings.values.repeats(arm, metric, "mean")
            if len(means) > 1:
                spreads[arm] = (max(means) - min(means), sum(means) / len(means))
        if spreads:
            worst = max(spreads, key=lambda arm: spreads[arm][0])
            size, mean = spreads[worst]
            largest = max(largest, size)
            share = f" ({percent(size / mean)})" if mean else ""
            told.append(f"{duration(size)}{share} in {name}, of {worst.label}")
    if told and not largest:
        return ": here their means are alike to the bit"
    return f"; the largest are {enumerate_words(told)}" if told else ""

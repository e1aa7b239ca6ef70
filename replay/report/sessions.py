"""What the report says of sessions: whether turns waited for those before them, and how long whole sessions took."""

from __future__ import annotations

from replay.metrics.notation import duration, percent, plural
from replay.report.findings import Findings
from replay.report.tables import Column, arm_table, defined
from replay.results import Trace

CLOSED = (
    "a turn is due at the later of its arrival and the end of the turn before plus its think time; after a turn that "
    "was not completed, the rest of its session is skipped"
)
OPEN = "every turn is due at its arrival, whatever became of the turn before"
SESSIONS = [
    Column("sessions completed", "sessions_completed", "value", percent),
    Column("time p50", "session_time", "p50", duration),
    Column("time p99", "session_time", "p99", duration),
    Column("time a token, mean", "session_latency", "mean", duration),
]


def told_of_loop(trace: Trace, *, open_loop: bool) -> list[str]:
    """Of a trace with sessions, whether it was replayed in a closed or an open loop; nothing of others."""
    found = trace.sessions
    if not found:
        return []
    what = f"{plural(found['sessions'], 'session')} with {plural(found['requests'], 'request')}"
    lines = [f"sessions: {'open' if open_loop else 'closed'} loop, {what}: {OPEN if open_loop else CLOSED}"]
    if open_loop and (together := found.get("at_once")):
        lines.append(
            f"sessions: {plural(together, 'turn')} came at the same instant as the one before, as in the trace"
        )
    if gaps := found.get("with_gaps"):
        lines.append(
            f"sessions: in {gaps:,} of them numbers of turns are left out, as where a row of the trace was skipped; "
            "they go on without those turns"
        )
    return lines


def session_table(findings: Findings, trace: str) -> list[str]:
    """The section on sessions as a whole; none where the trace has no sessions."""
    found, values = findings.of(trace), findings.values
    columns = defined(SESSIONS, found, values)
    if not columns:
        return []
    note = (
        "*Time*: from when a session's first turn was due to its last answer, the times between turns included, of "
        "sessions whose turns were all completed; *a token*: of all its answers."
    )
    return ["### Sessions", note, arm_table(columns, found, values)]

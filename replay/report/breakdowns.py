"""Who pays: tables by user, priority and output length, groups down and policies across."""

from __future__ import annotations

from replay.metrics.arms import Arm
from replay.metrics.notation import milliseconds
from replay.report.findings import Findings
from replay.report.tables import markdown

MOST_GROUPS = 12
"""Rows of a breakdown table; the rest are in summary.parquet."""


def breakdown(findings: Findings, trace: str, by: str) -> str | None:
    """One table for each mode: groups down, policies across."""
    groups = group_sizes(findings, trace, by)
    if len(groups) < 2:
        return None
    kept = sorted(groups, key=lambda group: -groups[group])[:MOST_GROUPS]
    shown = [group for group in groups if group in kept]
    found = findings.of(trace)
    parts = [f"#### By {'output length' if by == 'length' else by}"]
    if len(groups) > len(shown):
        parts.append(f"The {len(shown)} with the most requests of {len(groups)}; all are in the summary files.")
    for setting in dict.fromkeys(arm.setting for arm in found):
        members = [arm for arm in found if arm.setting == setting]
        rows = [[group, f"{groups[group]:,}", *(_paid(findings, arm, by, group) for arm in members)] for group in shown]
        heads = [by, "requests", *(arm.policy + arm.mark for arm in members)]
        parts.append(f"{setting}: mean TTFT / mean E2E, ms\n\n{markdown(heads, rows)}")
    return "\n\n".join(parts)


def group_sizes(findings: Findings, trace: str, by: str) -> dict[str, int]:
    """Requests of each group, in the groups' own order."""
    first = findings.of(trace)[0].names[0]
    rows = findings.measured.summary.filter(cell=first, by=by, metric="requests", statistic="count")
    return {group: int(value) for group, value in rows.select("group", "value").iter_rows()}


def _paid(findings: Findings, arm: Arm, by: str, group: str) -> str:
    ttft, e2e = (findings.values.value(arm, metric, "mean", by, group) for metric in ("ttft", "e2e"))
    return f"{milliseconds(ttft)} / {milliseconds(e2e)}"

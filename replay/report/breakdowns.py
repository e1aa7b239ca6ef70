"""Who pays: tables by user, priority and output length, groups down and policies across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replay.metrics.arms import Arm
from replay.metrics.few import many
from replay.metrics.notation import milliseconds
from replay.report.findings import Findings
from replay.report.tables import joined, markdown

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
        texts = {arm: [_paid(findings, arm, by, group) for group in shown] for arm in members}
        sizes = {group: groups[group] for group in shown}
        parts.append(f"{setting}: mean TTFT / mean E2E, ms\n\n{by_group(by, sizes, texts)}")
    return "\n\n".join(parts)


def by_group(by: str, sizes: Mapping[str, int], texts: Mapping[Arm, Sequence[str]]) -> str:
    """A table of what is said of each group under each policy of a mode: groups down and policies across; of many
    policies, policies down and groups across."""
    names = {arm: arm.policy + arm.mark for arm in texts}
    if many(list(texts)):
        down = joined([[names[arm], *found] for arm, found in texts.items()], place=0)
        return markdown(["policy", *(f"{group} ({size:,})" for group, size in sizes.items())], down)
    across = zip(sizes.items(), zip(*texts.values(), strict=True), strict=True)
    rows = [[group, f"{size:,}", *found] for (group, size), found in across]
    return markdown([by, "requests", *names.values()], rows)


def group_sizes(findings: Findings, trace: str, by: str) -> dict[str, int]:
    """Requests of each group, in the groups' own order."""
    first = findings.of(trace)[0].names[0]
    rows = findings.measured.summary.filter(cell=first, by=by, metric="requests", statistic="count")
    return {group: int(value) for group, value in rows.select("group", "value").iter_rows()}


def _paid(findings: Findings, arm: Arm, by: str, group: str) -> str:
    ttft, e2e = (findings.values.value(arm, metric, "mean", by, group) for metric in ("ttft", "e2e"))
    return f"{milliseconds(ttft)} / {milliseconds(e2e)}"

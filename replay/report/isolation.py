"""The section on isolation: how long the other users' requests take beside some users, and without them."""

from __future__ import annotations

from replay.metrics.isolation import FIGURES, Isolated, isolation, without
from replay.metrics.notation import UNDEFINED, milliseconds, number
from replay.report.breakdowns import group_sizes
from replay.report.findings import Findings
from replay.report.tables import markdown

MOST_USERS = 6
"""Rows of each policy; the figures of all users are in summary.parquet."""


def isolation_section(findings: Findings, trace: str) -> list[str]:
    """A row for each mode, policy and user; nothing where the trace was not replayed without somebody."""
    run = findings.run
    other = without(run.trace(trace), run.traces)
    if other is None or other.name not in findings.traces:
        return []
    sizes = group_sizes(findings, other.name, "user")
    users = sorted(sizes, key=lambda user: -sizes[user])[:MOST_USERS]
    found = isolation(findings.of(trace), findings.of(other.name), users, findings.values)
    names = other.variant["without"]
    told = f"What {names} cost the others: milliseconds with / without the requests of {names}, and their ratio."
    if len(sizes) > len(users):
        told += f" The {len(users)} with the most requests of {len(sizes)} users; all are in the summary files."
    rows = []
    for place in range(0, len(found), len(FIGURES)):
        figures = found[place : place + len(FIGURES)]
        arm = figures[0].arm
        rows.append([arm.setting, arm.policy + arm.mark, figures[0].user, *(_text(each) for each in figures)])
    heads = [f"{metric.upper()} {statistic}" for metric, statistic in FIGURES]
    return ["### Isolation", told, markdown(["mode", "policy", "user", *heads], rows, words=3)]


def _text(figure: Isolated) -> str:
    """`120 / 80.0 (1.50x)`."""
    ratio = UNDEFINED if figure.ratio is None else f"{number(figure.ratio)}x"
    return f"{milliseconds(figure.beside)} / {milliseconds(figure.alone)} ({ratio})"

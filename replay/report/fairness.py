"""The sentence on fairness: between users by what they are slowed down and by what they get, and the longest wait.

The first two disagree where one user asks for more than the others: who gives all as much slows that one down.
"""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics.arms import BASE_POLICY, Arm
from replay.metrics.notation import duration, number, several
from replay.report.findings import Findings


def told_of_fairness(found: Sequence[Arm], findings: Findings) -> str | None:
    """The best and the worst policy of one setting; None where there is one policy, or nothing to measure."""
    arms = [arm for arm in found if not arm.mark]
    parts = [
        text
        for metric, name, best_first in (
            ("jain", "Jain's index over users' slowdowns", True),
            ("service_difference", "service of two users apart by at most", False),
            ("longest_wait", "longest wait", False),
        )
        if (text := _ends(arms, findings, metric, name, best_first=best_first))
    ]
    if len(arms) < 2 or not parts:
        return None
    note = ""
    if _even_service_is_uneven_slowdown(arms, findings):
        note = " (users who get as much are not slowed down as much: whoever asks for more waits longer)"
    elif _fair_is_lower(arms, findings):
        note = " (`fair` shares slots by count; the index is over slowdown)"
    return f"Fairness in {arms[0].setting}: {'; '.join(parts)}{note}."


def _ends(arms: Sequence[Arm], findings: Findings, metric: str, name: str, *, best_first: bool) -> str | None:
    """`Jain's index over users 0.99 with sjf and 0.64 with hybrid`."""
    values = {arm: value for arm in arms if (value := findings.values.value(arm, metric, "value")) is not None}
    if len(values) < 2:
        return None
    write = duration if metric == "longest_wait" else number
    best, worst = sorted(values, key=lambda arm: values[arm], reverse=best_first)[:: len(values) - 1]
    if not findings.compare(metric, worst, best).seen:
        low, high = sorted((values[worst], values[best]))
        extent = write(low) if write(low) == write(high) else f"{write(low)} to {write(high)}"
        return f"no difference seen in {name} ({extent})"
    ends = []
    for end in (best, worst):
        alike = [arm.policy for arm in values if write(values[arm]) == write(values[end])]
        ends.append(f"{write(values[end])} with {several(alike)}")
    return f"{name} {ends[0]}, and {ends[1]}"


def _even_service_is_uneven_slowdown(arms: Sequence[Arm], findings: Findings) -> bool:
    """Whether the policy that keeps users' service the closest has a lower Jain's index than the one that does not."""
    apart = {arm: value for arm in arms if (value := findings.values.value(arm, "service_difference", "value"))}
    if len(apart) < 2:
        return False
    closest, furthest = min(apart, key=apart.__getitem__), max(apart, key=apart.__getitem__)
    further, index = (
        findings.compare("service_difference", closest, furthest),
        findings.compare("jain", furthest, closest),
    )
    return further.seen and index.seen and index.merit < 0


def _fair_is_lower(arms: Sequence[Arm], findings: Findings) -> bool:
    by_policy = {arm.policy: arm for arm in arms}
    if "fair" not in by_policy or BASE_POLICY not in by_policy:
        return False
    return findings.compare("jain", by_policy[BASE_POLICY], by_policy["fair"]).merit < 0

"""The regime: what the steps of each arm were bound by, and so in what its policy could differ from others.

A step's bound is the first thing that refused a request tokens in it. What is bound by nothing leaves no choice.
"""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics.arms import Arm
from replay.metrics.contrasts import QUEUEING, queued
from replay.metrics.engine import BOUNDS
from replay.metrics.few import many
from replay.metrics.notation import enumerate_words, percent
from replay.report.findings import Findings
from replay.report.tables import joined, markdown

NAMES = {
    "gate": "gate-bound",
    "slots": "slot-bound",
    "blocks": "block-bound",
    "budget": "budget-bound",
    "policy": "policy-bound",
    "nothing": "unbound",
}
MEANS = {
    "gate": "the mode decides when anybody joins: policies differ in whom they put into the next batch",
    "slots": "the batch is full: policies differ in whose turn is next, and in who gives up a slot for another",
    "blocks": "memory is short: policies differ in whom they admit by memory to come, and in whom they evict",
    "budget": "a step's tokens are used up: policies differ in whose prompt is computed first, and in what parts",
    "policy": "a rule of the policy's own holds requests back where there is room: what differs is the rule's price",
    "nothing": "everybody has what they want: policies can differ only in what is left of the time",
}
SECOND = 0.1
"""Share of the time from which a second bound is told beside the first."""
MOST_NAMES = 4
"""More settings or policies than these are counted, not named."""


def regime(findings: Findings, trace: str) -> str:
    """The table of one trace with what it means, and where there was no queue."""
    found = findings.of(trace)
    times = {arm: shares(findings, arm) for arm in found}
    steps = {arm: shares(findings, arm, "steps_") for arm in found}
    columns = [bound for bound in BOUNDS if any(times[arm].get(bound) for arm in found)]
    rows = []
    for arm in found:
        waited = percent(findings.values.value(arm, "queued", "value"))
        texts = [_both(times[arm].get(bound), steps[arm].get(bound)) for bound in columns]
        rows.append([arm.setting, arm.policy + arm.mark, words(times[arm]), waited, *texts])
    rows = joined(rows) if many(found) else rows
    heads = ["mode", "policy", "regime", "waited beyond a step", *(f"by {bound}" for bound in columns)]
    kinds = [bound for bound in BOUNDS if bound in {leading(times[arm]) for arm in found if times[arm]}]
    meanings = [f"- {NAMES[bound].capitalize()}: {MEANS[bound]}." for bound in kinds]
    settings: dict[str, list[Arm]] = {}
    for arm in findings.compared_of(trace):
        settings.setdefault(arm.setting, []).append(arm)
    meanings += [f"- {setting}: {told}" for setting, arms in settings.items() if (told := no_queueing(arms, findings))]
    note = (
        "What a step was bound by is what first refused a request in it. Shares of the time, in brackets of the steps; "
        "*waited beyond a step*: requests that were left waiting by a step that could have admitted them."
    )
    return "\n\n".join(part for part in (note, markdown(heads, rows, words=3), "\n".join(meanings)) if part)


def told_of_regime(found: Sequence[Arm], findings: Findings, *, queues: bool = False) -> str | None:
    """`Regime: **static** is gate-bound (76 to 80 % of the time); **continuous** is slot-bound (83 %).`

    Where nobody queued is added for settings of one policy, and with `queues` for all: else it is told with the
    comparison of policies.
    """
    alike: dict[tuple[tuple[str, ...], ...], list[str]] = {}  # settings by which policies are bound by what
    known: dict[tuple[str, str], list[float]] = {}
    for setting in dict.fromkeys(arm.setting for arm in found):
        kinds: dict[str, list[str]] = {}
        for arm in found:
            if arm.setting == setting and (bounds := shares(findings, arm)):
                kinds.setdefault(leading(bounds), []).append(arm.policy + arm.mark)
                known.setdefault((setting, leading(bounds)), []).append(bounds[leading(bounds)])
        if kinds:
            alike.setdefault(_key(kinds), []).append(setting)
    parts: list[str] = []
    for key, settings in alike.items():
        names = [f"**{setting}**" for setting in settings]
        who = enumerate_words(names) if len(names) <= MOST_NAMES else f"{len(names)} settings"
        whats: list[str] = []
        for kind, *policies in key:
            extent = _extent([share for setting in settings for share in known[setting, kind]])
            under = f" under {_policies(list(policies))}" if len(key) > 1 else ""
            whats.append(f"{NAMES[kind]} ({extent}{' of the time' if not parts + whats else ''}){under}")
        parts.append(f"{who} {'is' if len(names) == 1 else 'are'} {enumerate_words(whats)}")
    return f"Regime: {'; '.join(parts)}.{_unqueued(found, findings, queues=queues)}" if parts else None


def _unqueued(found: Sequence[Arm], findings: Findings, *, queues: bool) -> str:
    """` No queueing in **continuous**: policies cannot be told apart there.`"""
    settings: dict[str, list[Arm]] = {}
    for arm in found:
        settings.setdefault(arm.setting, []).append(arm)
    names = [
        f"**{setting}**"
        for setting, arms in settings.items()
        if (queues or len(arms) == 1) and not any(queued(arm, findings.values) for arm in arms)
    ]
    if not names:
        return ""
    where = enumerate_words(names) if len(names) <= MOST_NAMES else f"{len(names)} settings"
    return f" No queueing in {where}: policies cannot be told apart there."


def no_queueing(found: Sequence[Arm], findings: Findings) -> str | None:
    """That there was no queue under any of these policies of one setting, and by which figures; None if there was."""
    if any(queued(arm, findings.values) for arm in found):
        return None
    figures = []
    for metric, told in (
        ("queued", "of requests waited beyond the first step that could admit them"),
        ("left_waiting", "of admitting steps left somebody waiting"),
    ):
        values = [value for arm in found if (value := findings.values.value(arm, metric, "value")) is not None]
        if values:
            figures.append(f"{'at most ' if max(values) and len(found) > 1 else ''}{percent(max(values))} {told}")
    why = f": {' and '.join(figures)} (from {percent(QUEUEING)} on, there is a queue)" if figures else ""
    swept = any("load" in trace.variant for trace in findings.run.traces)
    hint = "" if swept else "; `loads` finds where they part"
    return f"no queueing: policies cannot be told apart on this trace{why}{hint}."


def shares(findings: Findings, arm: Arm, of: str = "") -> dict[str, float]:
    """The shares of an arm's time (or, with `of` = "steps_", of its steps) by what bound them; empty without steps."""
    found = {bound: findings.values.value(arm, f"{of}bound_by_{bound}", "value") for bound in BOUNDS}
    return {bound: share for bound, share in found.items() if share is not None}


def leading(bounds: dict[str, float]) -> str:
    """What most of the time was bound by."""
    return max(bounds, key=lambda bound: bounds[bound])


def words(bounds: dict[str, float]) -> str:
    """`slot-bound 62 % of the time, block-bound 21 %`; "no steps" without any."""
    if not bounds:
        return "no steps"
    first = leading(bounds)
    others = sorted((bound for bound in bounds if bound != first and bounds[bound] >= SECOND), key=lambda b: -bounds[b])
    told = [f"{NAMES[first]} {_whole(bounds[first])} of the time"]
    return ", ".join(told + [f"{NAMES[bound]} {_whole(bounds[bound])}" for bound in others])


def _key(kinds: dict[str, list[str]]) -> tuple[tuple[str, ...], ...]:
    """Kinds with their policies; one kind alone is under every policy, whichever these are."""
    return tuple((kind, *(policies if len(kinds) > 1 else [])) for kind, policies in kinds.items())


def _policies(names: list[str]) -> str:
    return enumerate_words(names) if len(names) <= MOST_NAMES else f"{len(names)} policies"


def _extent(found: Sequence[float]) -> str:
    low, high = _whole(min(found)), _whole(max(found))
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def _whole(share: float) -> str:
    return f"{100 * share:.0f} %"


def _both(time: float | None, steps: float | None) -> str:
    return f"{percent(time)} ({percent(steps)})" if time or steps else percent(time)

"""The tables on fairness between users and on starvation: a row for each mode and policy, columns that are defined."""

from __future__ import annotations

from collections.abc import Sequence

from replay.metrics.notation import duration, number, percent
from replay.report.breakdowns import by_group, group_sizes
from replay.report.findings import Findings
from replay.report.tables import Column, arm_table, defined

BETWEEN_USERS = [
    Column("apart at most", "service_difference", "value", number),
    Column("apart on average", "service_difference_mean", "value", number),
    Column("short a second, at most", "windowed_difference", "max", number),
    Column("short a second, mean", "windowed_difference", "mean", number),
    Column("Jain of service, mean", "service_jain", "mean", number),
    Column("least / most, mean", "service_ratio", "mean", number),
    Column("off the fair shares, mean", "max_min_gap", "mean", percent),
]
STARVATION = [
    Column("longest without a token", "starvation_age", "max", duration),
    Column("p99 of it", "starvation_age", "p99", duration),
    Column("passed over, mean", "inversion_time", "mean", duration),
    Column("passed over, at most", "inversion_time", "max", duration),
    Column("own deadlines met", "deadline_met", "value", percent),
    Column("experience, mean", "qoe", "mean", number),
    Column("experience, worst", "qoe", "min", number),
]


def fairness_tables(findings: Findings, trace: str) -> list[str]:
    """What users received beside each other, and who was left without tokens."""
    found, values = findings.of(trace), findings.values
    parts = []
    if columns := defined(BETWEEN_USERS, found, values):
        parts += ["### Fairness between users", _service_in_words(findings, trace), arm_table(columns, found, values)]
    if columns := defined(STARVATION, found, values):
        parts += ["### Starvation", _starvation_in_words(columns), arm_table(columns, found, values)]
    if table := _classes(findings, trace):
        parts += ["### Goals by class of service", *table]
    return parts


def _service_in_words(findings: Findings, trace: str) -> str:
    service = findings.run.service
    told = (
        f"Service is {service.prompt:g} for a prompt token and {service.output:g} for an answer's. *Apart*: how much "
        "more one user got than another since both have had requests waiting, of the two furthest apart"
    )
    windows = findings.measured.windows.filter(trace=trace)
    if windows.is_empty():
        return f"{told}."
    length = duration(round(windows["end"][0] - windows["start"][0], 6))
    return (
        f"{told}. The others are of windows of {length}, each begun a tenth of that after the one before, over the "
        "users who wanted anything in them. *Short*: how much less users got than the best served, as far as they "
        "wanted it. *Off the fair shares*: the part of all service by which users differ from their max-min fair "
        "shares of it."
    )


def _starvation_in_words(columns: Sequence[Column]) -> str:
    told = "*Without a token*: from due or from the last token, until the next or the end."
    metrics = {column.metric for column in columns}
    if "inversion_time" in metrics:
        told += " *Passed over*: the time that a request waited while a less urgent one held a slot."
    if "qoe" in metrics:
        told += " *Experience*: 1 where every token came when it was to be read, 0 where none did."
    return told


def _classes(findings: Findings, trace: str) -> list[str]:
    """For each mode, goodput and deadlines met of each class, policies across; nothing where all are of one class."""
    sizes = group_sizes(findings, trace, "class")
    found, values = findings.of(trace), findings.values
    measured = [
        (name, metric)
        for name, metric in (("goodput", "goodput"), ("own deadlines met", "deadline_met"))
        if any(values.value(arm, metric, "value", "class", group) is not None for arm in found for group in sizes)
    ]
    if len(sizes) < 2 or not measured:
        return []
    parts = []
    for setting in dict.fromkeys(arm.setting for arm in found):
        arms = [arm for arm in found if arm.setting == setting]
        texts = {
            arm: [
                " / ".join(percent(values.value(arm, metric, "value", "class", group)) for _, metric in measured)
                for group in sizes
            ]
            for arm in arms
        }
        parts.append(f"{setting}: {' / '.join(name for name, _ in measured)}\n\n{by_group('class', sizes, texts)}")
    return parts

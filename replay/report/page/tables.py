"""Tables of arms for the page: what is written, the value to sort by, and which are the best and the worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay.metrics import metrics
from replay.metrics.arms import Arm
from replay.report.findings import Findings
from replay.report.tables import (
    ENGINE,
    LATENCY,
    OUTCOMES,
    SERVICE,
    Column,
    best,
    defined,
    shown,
    worst,
)

HEADLINE = ("TTFT mean", "TTFT p50", "TTFT p99", "TPOT p50", "E2E mean", "E2E p99", "longest wait")
HEADLINE_SERVICE = ("output tokens/s", "goodput", "Jain index")


@dataclass(frozen=True, slots=True)
class Head:
    """A column: what it is called, what it means, and whether its smaller values are the better ones."""

    text: str
    meaning: str
    better: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A cell: how it is written, its value (None: not defined), `best`, `worst` or neither, and its share of the
    largest in its column, 0 to 1."""

    text: str
    value: float | None
    rank: str
    share: float | None


@dataclass(frozen=True, slots=True)
class Row:
    arm: Arm
    figures: list[Figure]


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    note: str
    heads: list[Head]
    rows: list[Row]


def tables(findings: Findings, trace: str) -> list[Table]:
    """The comparison table in short, then each of its chapters in full."""
    short = [column for column in LATENCY if column.head in HEADLINE]
    short[-1:-1] = [column for column in SERVICE if column.head in HEADLINE_SERVICE]
    in_milliseconds = "Times in milliseconds."
    completed = [column for column in OUTCOMES if column.metric == "completed"]
    return [
        _table(findings, trace, "In short", in_milliseconds, [*short, *completed]),
        _table(findings, trace, "Latency", in_milliseconds, LATENCY),
        _table(findings, trace, "Throughput and fairness", "", SERVICE),
        _table(findings, trace, "How requests ended", "", OUTCOMES, ranked=False),
        _table(findings, trace, "The engine", "", ENGINE, ranked=False),
    ]


def _table(
    findings: Findings, trace: str, title: str, note: str, columns: Sequence[Column], *, ranked: bool = True
) -> Table:
    found, values = findings.of(trace), findings.values
    kept = defined(shown(columns, found), found, values)
    ends = [(best(column, found, values), worst(column, found, values)) if ranked else (None, None) for column in kept]
    largest = [
        max((abs(value) for arm in found if (value := column.value(arm, values)) is not None), default=0.0)
        for column in kept
    ]
    rows = [
        Row(
            arm,
            [_figure(column, arm, findings, *end, top) for column, end, top in zip(kept, ends, largest, strict=True)],
        )
        for arm in found
    ]
    return Table(title, note, [_head(column) for column in kept], rows)


def _figure(column: Column, arm: Arm, findings: Findings, best: str | None, worst: str | None, top: float) -> Figure:
    text, value = column.text(arm, findings.values), column.value(arm, findings.values)
    rank = "" if arm.mark else "best" if text == best else "worst" if text == worst else ""
    return Figure(text, value, rank, None if value is None or not top else round(abs(value) / top, 3))


def _head(column: Column) -> Head:
    entry = metrics[column.metric]
    return Head(column.head, f"{column.metric}, {column.statistic}: {entry.formula}", entry.better or "")

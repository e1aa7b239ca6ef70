"""From what was measured to tables in Markdown: tokens per second, ratios, agreement of tokens.

Ratios are taken round by round and then the median of them, because the speed of a machine drifts between rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

Answers = list[list[int]]


@dataclass
class Measured:
    """One peer's row. `seconds` of each round by job; `answers` of the last round by job; `skipped` says why not."""

    name: str
    ours: bool = False
    skipped: str | None = None
    ready_seconds: float = 0.0
    about: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    details: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    answers: dict[str, Answers] = field(default_factory=dict)


def spread(values: Sequence[float], digits: int) -> str:
    """The median, the least and the largest, in words."""
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), median(values), max(values)))
    return f"{middle} [{low} .. {high}]"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, its columns aligned for whoever reads it as text."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def speeds(measured: Sequence[Measured], tokens: dict[str, int], flop: dict[str, int], gflops: float) -> str:
    """Output tokens per second of each peer and job, and its share of `gflops`, the arithmetic ceiling."""
    rows = []
    for peer in measured:
        if peer.skipped:
            rows.append([peer.name, f"skipped: {peer.skipped}", *[""] * (2 * len(tokens))])
            continue
        cells = [peer.name, f"{peer.ready_seconds:.1f}"]
        for job, count in tokens.items():
            seconds = peer.seconds[job]
            cells.append(spread([count / each for each in seconds], 1))
            cells.append(f"{flop[job] / median(seconds) / 1e9 / gflops:.0%}")
        rows.append(cells)
    head = ["peer", "ready, s", *[cell for job in tokens for cell in (f"{job}, tok/s", "of ceiling")]]
    return markdown(head, rows)


def ratios(measured: Sequence[Measured], jobs: Sequence[str]) -> str:
    """How many times as fast each of our rows was as each other row, in the same round; of rows that were measured."""
    rows = [
        [ours.name, peer.name]
        + [
            spread([theirs / own for own, theirs in zip(ours.seconds[job], peer.seconds[job], strict=True)], 2)
            for job in jobs
        ]
        for ours in measured
        for peer in measured
        if ours.ours and peer is not ours
    ]
    return markdown(["ours", "against", *jobs], rows)


def agreement(answers: Answers, reference: Answers) -> tuple[float, float]:
    """The share of answers that are the same, and the share of tokens that come before an answer's first difference."""
    same = sum(answer == other for answer, other in zip(answers, reference, strict=True))
    before = sum(
        next((i for i, (a, b) in enumerate(zip(answer, other, strict=True)) if a != b), len(other))
        for answer, other in zip(answers, reference, strict=True)
    )
    return same / len(reference), before / sum(map(len, reference))


def agreements(measured: Sequence[Measured], reference: Measured, jobs: Sequence[str]) -> str:
    """How far the greedy answers of each row are those of `reference`; of rows that were measured."""
    rows = []
    for peer in measured:
        if peer is not reference:
            pairs = [agreement(peer.answers[job], reference.answers[job]) for job in jobs]
            rows.append([peer.name, *[f"{same:.1%}, {before:.1%}" for same, before in pairs]])
    return markdown([f"answers equal, tokens before a difference; against {reference.name}", *jobs], rows)

"""Tables of arms: which figures stand in them, and how they look as Markdown and as aligned text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from replay.metrics import metrics
from replay.metrics.arms import Arm, Values
from replay.metrics.few import BEST, many
from replay.metrics.notation import aligned, duration, milliseconds, number, percent, whole


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of an arm: the head of its column, and how it is written. Whether more is better, its metric knows."""

    head: str
    metric: str
    statistic: str
    write: Callable[[float | None], str] = milliseconds

    def value(self, arm: Arm, values: Values) -> float | None:
        return values.value(arm, self.metric, self.statistic)

    def text(self, arm: Arm, values: Values) -> str:
        return self.write(self.value(arm, values))


LATENCY = [
    Column("TTFT mean", "ttft", "mean"),
    Column("TTFT p50", "ttft", "p50"),
    Column("TTFT p95", "ttft", "p95"),
    Column("TTFT p99", "ttft", "p99"),
    Column("delivered TTFT p50", "ttft_delivered", "p50"),
    Column("delivered TTFT p99", "ttft_delivered", "p99"),
    Column("TPOT p50", "tpot", "p50"),
    Column("TPOT p99", "tpot", "p99"),
    Column("E2E mean", "e2e", "mean"),
    Column("E2E p50", "e2e", "p50"),
    Column("E2E p99", "e2e", "p99"),
    Column("longest wait", "longest_wait", "value"),
]
SERVICE = [
    Column("output tokens/s", "output_throughput", "value", number),
    Column("in the steady window", "output_throughput_steady", "value", number),
    Column("in the drain", "output_throughput_drain", "value", number),
    Column("prompt tokens/s", "prompt_throughput", "value", number),
    Column("goodput", "goodput", "value", percent),
    Column("good requests/s", "goodput_rate", "value", number),
    Column("Jain index", "jain", "value", number),
    Column("overtakes, mean", "overtakes", "mean", number),
]
OUTCOMES = [
    Column(status.replace("_", " "), status, "count", whole)
    for status in ("requests", "completed", "rejected", "timed_out", "cancelled", "failed", "skipped", "unfinished")
]
ENGINE = [
    Column("batch size, mean", "batch_size", "mean", number),
    Column("size in force, mean", "size_in_force", "value", number),
    Column("tokens a step, mean", "tokens_per_step", "mean", number),
    Column("step p50, ms", "step_time", "p50"),
    Column("scheduler p99, ms", "scheduler_time", "p99"),
    Column("pace", "pace", "value", number),
    Column("KV use, mean", "kv_use", "mean", percent),
    Column("KV use, max", "kv_use", "max", percent),
    Column("padding", "padding_share", "value", percent),
    Column("slots useful", "slot_useful", "value", percent),
    Column("slots idle", "slot_idle", "value", percent),
    Column("evictions", "evictions", "count", whole),
    Column("swapped out", "swaps", "count", whole),
    Column("computed again", "recomputed_tokens", "count", whole),
    Column("prefix hits", "cache_hit_rate", "value", percent),
]
HEADLINE = [
    *(column for column in LATENCY if column.head in ("TTFT p50", "TTFT p99", "TPOT p50", "E2E p50", "E2E p99")),
    *(column for column in SERVICE if column.head in ("output tokens/s", "goodput", "Jain index")),
    next(column for column in LATENCY if column.metric == "longest_wait"),
    Column("completed requests", "completed", "count", whole),
]
"""The compact table of a terminal."""
LAST = 3
"""Rows of the worst policies of a mode, in that table."""
LONG = 100.0
"""Seconds from which a figure of the terminal's table is told in seconds."""


def shown(columns: Sequence[Column], found: Sequence[Arm]) -> list[Column]:
    """The columns that say something: delivered TTFT only where some mode delivers a batch together, the batch size in
    force only where one adapts."""
    cells = [cell for arm in found for cell in arm.cells]
    said = {"ttft_delivered": any(cell.padded for cell in cells), "size_in_force": any(cell.adapts for cell in cells)}
    return [column for column in columns if said.get(column.metric, True)]


def best(column: Column, found: Sequence[Arm], values: Values) -> str | None:
    """How the best value of a column is written: whatever is written alike shares the bold. None: all alike.

    Arms that are invalid or partial take no part.
    """
    return _end(column, found, values, lowest=metrics[column.metric].better == "lower")


def worst(column: Column, found: Sequence[Arm], values: Values) -> str | None:
    """How the worst value of a column is written, by the same rule."""
    return _end(column, found, values, lowest=metrics[column.metric].better == "higher")


def _end(column: Column, found: Sequence[Arm], values: Values, *, lowest: bool) -> str | None:
    sound = [arm for arm in found if not arm.mark]
    known = [value for arm in sound if (value := column.value(arm, values)) is not None]
    if metrics[column.metric].better is None or len({column.write(value) for value in known}) < 2:
        return None
    return column.write(min(known) if lowest else max(known))


def defined(columns: Sequence[Column], found: Sequence[Arm], values: Values) -> list[Column]:
    """The columns that some arm has a value for."""
    return [column for column in columns if any(column.value(arm, values) is not None for arm in found)]


def arm_table(columns: Sequence[Column], found: Sequence[Arm], values: Values, *, mark: bool = True) -> str:
    """Markdown: a row for each arm, the best of each column in bold."""
    columns = shown(columns, found)
    top = [best(column, found, values) if mark else None for column in columns]
    rows = []
    for arm in found:
        texts = [column.text(arm, values) for column in columns]
        bold = [not arm.mark and text == winner for text, winner in zip(texts, top, strict=True)]
        marked = [f"**{text}**" if wins else text for text, wins in zip(texts, bold, strict=True)]
        rows.append([arm.setting, arm.policy + arm.mark, *marked])
    rows = joined(rows) if many(found) else rows
    return markdown(["mode", "policy", *(column.head for column in columns)], rows, words=2)


def joined(rows: Sequence[Sequence[str]], place: int = 1) -> list[list[str]]:
    """Rows that are written alike but for the name at `place` as one, at the first one's place: `fifo, klpm, lpm`."""
    return [[*alike[:place], ", ".join(names), *alike[place:]] for names, alike in _grouped(rows, place)]


def _grouped(rows: Sequence[Sequence[str]], place: int) -> list[tuple[list[str], tuple[str, ...]]]:
    """Rows without the name at `place`, each once, with the names of all that are written so."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        found.setdefault((*row[:place], *row[place + 1 :]), []).append(row[place])
    return [(names, alike) for alike, names in found.items()]


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A table whose first `words` columns are text, and whose others are figures, set to the right."""
    rule = ["---" if place < words else "---:" for place in range(len(heads))]
    lines = [heads, rule, *([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def readable(seconds: float | None) -> str:
    """Milliseconds without their unit; from a hundred seconds on, seconds with it."""
    return milliseconds(seconds) if seconds is None or seconds < LONG else duration(seconds)


def headline(found: Sequence[Arm], values: Values) -> str:
    """The main table as aligned text, under a line that says its unit."""
    columns = [replace(column, write=readable) if column.write is milliseconds else column for column in HEADLINE]
    heads = ["mode", "policy", *(column.head for column in columns)]
    rows = [[arm.setting, arm.policy + arm.mark, *(column.text(arm, values) for column in columns)] for arm in found]
    note = "Milliseconds, unless said otherwise."
    if many(found):
        rows = _ends(rows)
        note += (
            f" Of each mode, the {BEST} best and the {LAST} worst by mean end-to-end time, who is alike in a row; "
            "comparison.md has all."
        )
    return f"{note}\n{aligned(heads, rows)}"


def _ends(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The first and the last rows of each mode, with how many policies lie between them, or are alike in a row."""
    told: list[list[str]] = []
    for setting in dict.fromkeys(row[0] for row in rows):
        alike = _grouped([row for row in rows if row[0] == setting], place=1)
        short = [[setting, _short(names), *texts] for names, (_, *texts) in alike]
        between = sum(len(names) for names, _ in alike[BEST:-LAST])
        gap = [[setting, f"... {between} more", *[""] * (len(rows[0]) - 2)]] if between else []
        told += [*short[:BEST], *gap, *short[BEST:][-LAST:]]
    return told


def _short(names: Sequence[str]) -> str:
    """`fifo and 12 alike` of many names."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} alike"

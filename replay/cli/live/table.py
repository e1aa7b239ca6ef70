"""The cells that ended, as a table: the last ones first, and as many as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from replay.cli.live.lines import Line, fitted, printable
from replay.cli.live.tally import Tally
from replay.experiment.grid import Cell
from replay.metrics.notation import duration, number

NUMBERED = 79  # columns from which it has the numbers of cells
NAME = 12  # columns that a cell's name has at least
VERDICT = 4  # columns that are left for whether a cell is valid, at least


@dataclass(slots=True)
class Finished:
    """A cell that has ended: its figures, and why they are in doubt, if they are."""

    number: int
    name: str
    completed: str
    ttft_mean: str
    ttft_p99: str
    throughput: str
    doubt: str | None


def finished(number_: int, cell: Cell, tally: Tally | None, entry: dict[str, Any]) -> Finished:
    """A cell that has ended. `entry` is its entry in the manifest; `tally` what was seen of it, if it ran."""
    doubt = None if entry["status"] == "complete" else entry["status"]
    if reasons := [text for text in (doubt, entry["error"], entry["invalid_reason"]) if text]:
        doubt = printable(": ".join(reasons))
    seen = tally or Tally()
    return Finished(
        number=number_,
        name=printable(cell.name),
        completed=f"{entry['completed']}/{entry['requests']}",
        ttft_mean=duration(seen.ttft.mean),
        ttft_p99=seen.ttft.mark + duration(seen.ttft.quantile(0.99)),
        throughput=number(seen.output_throughput),
        doubt=doubt,
    )


def table(cells: Sequence[Finished], width: int, height: int) -> list[Line]:
    """No wider than `width` and no higher than `height`."""
    hidden = len(cells) - (height - 1)
    shown = cells[::-1] if hidden <= 0 else cells[: -(height - 2) - 1 : -1]
    numbers = len(str(cells[-1].number)) + 1 if width >= NUMBERED else 0
    done = 2 + max(len("done"), *(len(cell.completed) for cell in cells))
    figures = f"{'done':>{done}}{'TTFT mean':>11}{'p99':>10}{'tokens/s':>10}  "
    room = width - numbers - len(figures) - VERDICT
    name = max(NAME, min(room, max(cell_len(cell.name) for cell in shown))) if shown else NAME
    lines: list[Line] = [[(" " * numbers + fitted("cell", name) + figures + "valid", "dim")]]
    for cell in shown:
        figures = f"{cell.completed:>{done}}{cell.ttft_mean:>11}{cell.ttft_p99:>10}{cell.throughput:>10}  "
        verdict = ("yes", "good") if cell.doubt is None else (f"no: {cell.doubt}", "bad")
        at = f"{cell.number:<{numbers}}" if numbers else ""
        lines.append([(at, "dim"), (fitted(cell.name, name) + figures, ""), verdict])
    if hidden > 0:
        lines.append([(f"and {len(cells) - len(shown)} before", "dim")])
    return lines

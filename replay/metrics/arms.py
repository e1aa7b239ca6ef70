"""An arm: the cells that differ only in their repeat. A row of a table, a mark of a picture, a side of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from replay.results import Cell, Run

BASE_POLICY = "fifo"


@dataclass(frozen=True, slots=True)
class Arm:
    """A trace, mode, policy and variant, with its repeats in order. What was swept of a policy's own settings is part
    of its name: each is a policy that is held against others."""

    trace: str
    mode: str
    policy: str
    variant: str
    cells: Sequence[Cell] = field(hash=False, compare=False)

    @property
    def label(self) -> str:
        return f"{self.setting}, {self.policy}{self.mark}"

    @property
    def setting(self) -> str:
        """The mode, with what was swept."""
        return f"{self.mode} ({self.variant})" if self.variant else self.mode

    @property
    def valid(self) -> bool:
        return all(cell.valid for cell in self.cells)

    @property
    def mark(self) -> str:
        """What stands behind its name wherever it is named: its figures are not to be relied on."""
        if not self.valid:
            return " (invalid)"
        return " (partial)" if any(cell.partial for cell in self.cells) else ""

    @property
    def shown(self) -> Cell:
        """The repeat that stands for the others in a picture of one replay: the first that is valid."""
        return next((cell for cell in self.cells if cell.valid), self.cells[0])

    @property
    def names(self) -> list[str]:
        return [cell.name for cell in self.cells]


def arms(run: Run) -> list[Arm]:
    """The arms of a run that left rows, in the order of the manifest."""
    found: dict[tuple[str, str, str, str], list[Cell]] = {}
    for cell in run.recorded:
        found.setdefault((cell.trace, cell.mode, cell.named_policy, cell.rest), []).append(cell)
    return [Arm(*key, cells=cells) for key, cells in found.items()]


def finished(found: Sequence[Arm]) -> list[Arm]:
    """The arms with those repeats that ran to their end: a part of a replay is compared with nothing."""
    whole = [replace(arm, cells=[cell for cell in arm.cells if not cell.partial]) for arm in found]
    return [arm for arm in whole if arm.cells]


def base_policy(family: Iterable[Arm]) -> Arm:
    """The arm that the others are held against: fifo, or the first."""
    members = list(family)
    return next((arm for arm in members if arm.policy == BASE_POLICY), members[0])


class Values:
    """Quick look-ups in a summary: the value of an arm is the mean over its repeats."""

    def __init__(self, summary: pl.DataFrame) -> None:
        rows = summary.select("cell", "by", "group", "metric", "statistic", "value").iter_rows()
        self._values: dict[tuple[str, ...], float | None] = {tuple(key): value for *key, value in rows}

    def repeats(self, arm: Arm, metric: str, statistic: str, by: str = "all", group: str = "all") -> list[float]:
        """The values that are defined, one for each repeat."""
        found = (self._values.get((name, by, group, metric, statistic)) for name in arm.names)
        return [value for value in found if value is not None]

    def value(self, arm: Arm, metric: str, statistic: str, by: str = "all", group: str = "all") -> float | None:
        """The mean over the repeats; None where no repeat has one."""
        values = self.repeats(arm, metric, statistic, by, group)
        return sum(values) / len(values) if values else None

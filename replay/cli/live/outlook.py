"""How long a run has still to go: by what its cells took so far and, before any did, by what they take at least."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import mean

from replay.experiment.grid import Cell
from replay.experiment.settings import Engine


@dataclass(slots=True)
class Outlook:
    """What is known of a run before it runs. `shortest`: seconds that each cell lasts at least, in the order of cells;
    0 on a virtual clock, which need not wait."""

    name: str = ""
    cells: Sequence[Cell] = ()
    shortest: Sequence[float] = ()
    trace_names: Sequence[str] = ()  # where there are several
    repeats: int = 1
    lag_limit_ms: float | None = None


class TimeLeft:
    """The seconds that are left of a run, brought up to date as cells begin and end."""

    def __init__(self, outlook: Outlook | None = None) -> None:
        self.outlook = outlook or Outlook()
        self._engines: dict[Engine, int] = {}
        self._kinds = [self._kinds_of(cell) for cell in self.outlook.cells]
        self._took: dict[Hashable, list[float]] = {}
        self._later = 0.0  # seconds of the cells after the one that runs
        self._this = 0.0  # of the one that runs, when it began
        self._certain = False  # whether every cell to come is like one that ended

    def began(self, number: int, total: int) -> None:
        """Cell `number` of `total` begins, counted from 1."""
        if number == 1:
            self._took.clear()
        self._this, self._certain = self._expected(number)
        self._later = 0.0
        for later in range(number + 1, total + 1):
            seconds, certain = self._expected(later)
            self._later += seconds
            self._certain &= certain

    def ended(self, number: int, seconds: float) -> None:
        for kind in self._kinds_at(number):
            self._took.setdefault(kind, []).append(seconds)

    def shortest(self, number: int) -> float:
        """Seconds that a cell lasts at least, as far as that is known."""
        return self.outlook.shortest[number - 1] if number <= len(self.outlook.shortest) else 0.0

    def words(self, elapsed: float) -> str | None:
        """What is left from now on, when this cell has run for `elapsed` seconds; None when nothing is known."""
        seconds = self._later + max(0.0, self._this - elapsed)
        if not self._certain and seconds <= 0:
            return None
        return f"{'about' if self._certain else 'at least'} {in_words(seconds)} left"

    def _expected(self, number: int) -> tuple[float, bool]:
        """What a cell takes, like those that it resembles most; otherwise the least that it can, which is no answer."""
        for kind in self._kinds_at(number):
            if kind in self._took:
                return max(mean(self._took[kind]), self.shortest(number)), True
        return self.shortest(number), False

    def _kinds_at(self, number: int) -> Sequence[Hashable]:
        return self._kinds[number - 1] if number <= len(self._kinds) else ("any",)

    def _kinds_of(self, cell: Cell) -> Sequence[Hashable]:
        """What it has in common with cells that take about as long: first much, then less."""
        trace, mode = cell.trace, cell.mode.name
        engine = self._engines.setdefault(cell.engine, len(self._engines))
        return (
            (trace, engine, mode, cell.variant, cell.policy.name),
            (trace, engine, mode, cell.variant),
            (trace, engine, mode),
            (trace, engine),
            (trace,),
        )


def in_words(seconds: float) -> str:
    """`50 s`, `12 min`, `3.2 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"

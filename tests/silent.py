"""An observer of a run that shows nothing."""

from __future__ import annotations

from typing import Any

from replay.experiment.grid import Cell
from replay.replayer import Progress


class Silent:
    """Shows nothing."""

    def cell_started(self, number: int, total: int, cell: Cell) -> None:
        pass

    def progressed(self, progress: Progress) -> None:
        pass

    def cell_ended(self, cell: Cell, entry: dict[str, Any]) -> None:
        pass

    def remark(self, text: str) -> None:
        pass

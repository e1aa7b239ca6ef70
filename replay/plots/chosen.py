"""Some traces, modes and policies of a run, in the colours and the order that they have in the whole of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from replay.errors import ExperimentError
from replay.metrics import Measured
from replay.plots.view import View, views
from replay.registry import nearest
from replay.results import Cell, Run


@dataclass(frozen=True, slots=True)
class Chosen:
    """Names as the report writes them; a mode or a policy without its variant stands for all of its variants. None
    named: all."""

    traces: Sequence[str] = ()
    modes: Sequence[str] = ()
    policies: Sequence[str] = ()

    def cells(self, run: Run) -> list[Cell]:
        """The cells with rows that are asked for. ExperimentError for a name that none has, or where none is left."""
        recorded = run.recorded
        for kind, asked, names in (
            ("trace", self.traces, [name for cell in recorded for name in _traces(cell)]),
            ("mode", self.modes, [name for cell in recorded for name in _modes(cell)]),
            ("policy", self.policies, [name for cell in recorded for name in _policies(cell)]),
        ):
            _check(kind, asked, names)
        kept = [
            cell
            for cell in recorded
            if _asked(self.traces, _traces(cell))
            and _asked(self.modes, _modes(cell))
            and _asked(self.policies, _policies(cell))
        ]
        if recorded and not kept:
            raise ExperimentError(
                f"no cell of this run is all of these: {', '.join([*self.traces, *self.modes, *self.policies])}"
            )
        return kept


def _traces(cell: Cell) -> tuple[str, ...]:
    return (cell.trace,)


def _modes(cell: Cell) -> tuple[str, ...]:
    return (cell.mode, cell.setting)


def _policies(cell: Cell) -> tuple[str, ...]:
    return (cell.policy, cell.named_policy)


def _asked(names: Sequence[str], own: tuple[str, ...]) -> bool:
    return not names or any(name in own for name in names)


def _check(kind: str, asked: Sequence[str], names: Iterable[str]) -> None:
    known = dict.fromkeys(names)
    for name in asked:
        if name not in known:
            raise ExperimentError(f"this run has no {kind} {name!r}: {nearest(name, known)}")


def chosen_views(run: Run, measured: Measured, chosen: Chosen) -> list[View]:
    """A view for each trace that is asked for, with those arms alone. Figures are those of the whole run."""
    if chosen == Chosen():
        return views(run, measured)
    cells = chosen.cells(run)
    names = [cell.name for cell in cells]
    rows = replace(
        measured,
        requests=measured.requests.filter(pl.col("cell").is_in(names)),
        windows=measured.windows.filter(pl.col("cell").is_in(names)),
    )
    marks = {name: look for view in views(run, measured, every_policy=True) for name, look in view.marks.items()}
    return [
        replace(view, marks={policy: marks[policy] for policy in view.policies})
        for view in views(replace(run, cells=cells), rows)
    ]

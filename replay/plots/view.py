"""What a picture is drawn from, and the one colour, marker and place that each policy has in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.lines import Line2D

from replay.metrics import Measured
from replay.metrics.arms import Arm, Values, arms
from replay.plots.canvas import mark
from replay.results import Cell, Run

KNOWN = {
    "fifo": ("#0173B2", "o"),
    "sjf": ("#DE8F05", "^"),
    "priority": ("#B24FA0", "s"),
    "fair": ("#029E73", "D"),
    "hybrid": ("#C23B22", "v"),
}
OTHERS = [
    ("#8C564B", "P"),
    ("#56B4E9", "X"),
    ("#6F6F6F", "<"),
    ("#B8A200", ">"),
    ("#3D348B", "p"),
    ("#EC6FA9", "h"),
    ("#2E4600", "*"),
    ("#00BBC9", "d"),
]


@dataclass(frozen=True, slots=True)
class View:
    """One trace of a run. `policies` and `settings` are in their fixed order."""

    run: Run
    trace: str
    arms: Sequence[Arm]
    requests: pl.DataFrame  # `Measured.requests` of this trace
    values: Values
    policies: Sequence[str]
    settings: Sequence[str]
    marks: dict[str, tuple[str, str]]

    def arm(self, setting: str, policy: str) -> Arm | None:
        """The arm of a mode (with its variant) and policy, if it was run."""
        return next((arm for arm in self.arms if (arm.setting, arm.policy) == (setting, policy)), None)

    def rows(self, arm: Arm) -> pl.DataFrame:
        """The requests of all repeats of an arm."""
        return self.requests.filter(pl.col("cell").is_in(arm.names))

    def colour(self, policy: str) -> str:
        return self.marks[policy][0]

    def marker(self, policy: str) -> str:
        return self.marks[policy][1]

    @property
    def palette(self) -> dict[str, str]:
        """Colour by policy, as seaborn wants it."""
        return {policy: self.colour(policy) for policy in self.policies}

    def legend(self, **line: Any) -> list[Line2D]:
        """An entry for each policy; `line` changes its look, `marker=None` leaves the marker out."""
        return [
            mark(policy, **{"color": self.colour(policy), "marker": self.marker(policy)} | line)
            for policy in self.policies
        ]

    @property
    def remark(self) -> str:
        """What must be said of the times under every picture."""
        remarks = ["simulated: times come from a cost model"] if any(cell.simulated for cell in self._cells) else []
        if any(cell.partial for cell in self._cells):
            remarks.append("partial run")
        if not all(cell.valid for cell in self._cells):
            remarks.append("with invalid cells")
        return "; ".join(remarks)

    @property
    def _cells(self) -> list[Cell]:
        return [cell for arm in self.arms for cell in arm.cells]


def views(run: Run, measured: Measured) -> list[View]:
    """A view for each trace; policies look alike in all of them."""
    found, values = arms(run), Values(measured.summary)
    marks = policy_marks([cell.policy for cell in run.cells])
    return [
        View(
            run,
            trace,
            [arm for arm in found if arm.trace == trace],
            measured.requests.filter(pl.col("trace") == trace),
            values,
            list(marks),
            list(dict.fromkeys(arm.setting for arm in found if arm.trace == trace)),
            marks,
        )
        for trace in dict.fromkeys(arm.trace for arm in found)
    ]


def policy_marks(policies: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker by policy, in order of place: the five known ones look the same in every run."""
    names = list(dict.fromkeys(policies))
    others = [name for name in names if name not in KNOWN]
    spare = {name: OTHERS[place % len(OTHERS)] for place, name in enumerate(others)}
    order = [name for name in KNOWN if name in names] + others
    return {name: KNOWN.get(name) or spare[name] for name in order}

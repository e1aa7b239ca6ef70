"""What a picture is drawn from, and the one colour, marker and place that each policy has in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import polars as pl
from matplotlib.lines import Line2D

from replay.metrics import Measured
from replay.metrics.arms import Arm, Values, arms
from replay.metrics.few import few
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
INVALID = "#9c9c9c"
"""Instead of its policy's colour, for what a cell says whose times cannot be taken at face value."""
MOST_NAMED = 4
LINE = 90  # characters that fit under the narrowest picture


@dataclass(frozen=True, slots=True)
class View:
    """One trace of a run. `policies` and `settings` are in their fixed order; of many policies, the few to be shown."""

    run: Run
    trace: str
    arms: Sequence[Arm]
    requests: pl.DataFrame  # `Measured.requests` of this trace
    all_requests: pl.DataFrame  # the same of all traces of the run
    windows: pl.DataFrame  # `Measured.windows` of this trace
    values: Values
    policies: Sequence[str]
    settings: Sequence[str]
    marks: dict[str, tuple[str, str]]
    left_out: str | None = None  # which of many policies are shown; the others are in no picture

    def arm(self, setting: str, policy: str) -> Arm | None:
        """The arm of a mode (with its variant) and policy, if it was run."""
        return next((arm for arm in self.arms if (arm.setting, arm.policy) == (setting, policy)), None)

    @property
    def continuous(self) -> str:
        """The setting of a picture that shows one: the first that is continuous, or the first."""
        found = [arm.setting for arm in self.arms if arm.mode == "continuous"]
        return found[0] if found else self.settings[0]

    def rows(self, arm: Arm) -> pl.DataFrame:
        """The requests of all repeats of an arm."""
        return self.requests.filter(pl.col("cell").is_in(arm.names))

    def colour(self, policy: str) -> str:
        return self.marks[policy][0]

    def marker(self, policy: str) -> str:
        return self.marks[policy][1]

    def palette(self, setting: str, *, one_replay: bool = False) -> dict[str, str]:
        """Colour by policy in a mode's panel, of all repeats or of the one that stands for them: grey if invalid."""
        invalid = self._invalid(setting, one_replay=one_replay)
        return {policy: INVALID if policy in invalid else self.colour(policy) for policy in self.policies}

    def heading(self, setting: str, *, one_replay: bool = False) -> str:
        """A panel's title: the mode, and which policies are drawn in grey."""
        invalid = self._invalid(setting, one_replay=one_replay)
        return f"{setting}\ngrey: {', '.join(invalid)} (invalid)" if invalid else setting

    def _invalid(self, setting: str, *, one_replay: bool) -> list[str]:
        arms = {arm.policy: arm for arm in self.arms if arm.setting == setting}
        valid = {policy: arm.shown.valid if one_replay else arm.valid for policy, arm in arms.items()}
        return [policy for policy in self.policies if not valid.get(policy, True)]

    def legend(self, **line: Any) -> list[Line2D]:
        """An entry for each policy; `line` changes its look, `marker=None` leaves the marker out."""
        return [
            mark(policy, **{"color": self.colour(policy), "marker": self.marker(policy)} | line)
            for policy in self.policies
        ]

    def remark(self, drawn: Sequence[Cell] | None = None) -> str | None:
        """What must be said of the times under a picture of these cells, or of all."""
        cells = [cell for arm in self.arms for cell in arm.cells] if drawn is None else drawn
        remarks = ["simulated: times come from a cost model"] if any(cell.simulated for cell in cells) else []
        if any(cell.partial for cell in cells):
            remarks.append("partial run")
        late = {cell.name for cell in cells if not cell.valid}
        if labels := [f"{arm.setting}, {arm.policy}" for arm in self.arms if late & set(arm.names)]:
            more = f" and {len(labels) - MOST_NAMED} more" if len(labels) > MOST_NAMED else ""
            # lag is all that makes a cell invalid; its milliseconds are in the report
            remarks.append(f"invalid: {'; '.join(labels[:MOST_NAMED])}{more} (arrivals were taken in too late)")
        chosen = self.left_out if len({cell.named_policy for cell in cells}) > 1 else None
        return "\n".join(fill(text, LINE) for text in (chosen, "; ".join(remarks)) if text) or None


def views(run: Run, measured: Measured, *, every_policy: bool = False) -> list[View]:
    """A view for each trace; policies look alike in all of them, and of many the same few are shown.

    With `every_policy` all are: where a reader can hide some. The few look as they do in a picture.
    """
    every, values = arms(run), Values(measured.summary)
    chosen = few(every, values)
    names = [cell.named_policy for cell in run.cells] if chosen.left_out is None else chosen.policies
    marks = policy_marks([*names, *(arm.policy for arm in every)] if every_policy else names)
    found = [arm for arm in every if arm.policy in marks]
    return [
        View(
            run,
            trace,
            [arm for arm in found if arm.trace == trace],
            measured.requests.filter(pl.col("trace") == trace),
            measured.requests,
            measured.windows.filter(pl.col("trace") == trace),
            values,
            list(marks),
            list(dict.fromkeys(arm.setting for arm in found if arm.trace == trace)),
            marks,
            None if every_policy else chosen.left_out,
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

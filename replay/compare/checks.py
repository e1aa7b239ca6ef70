"""Judges a comparison by what `--fail-if` asks: which cells are in breach, and which cannot be judged.

A check never passes in silence: where a figure is not defined, or a cell is invalid, partial or left no rows, it fails
and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay.compare.comparison import BASELINE, Comparison
from replay.compare.differences import Sight
from replay.compare.expression import Check, Condition
from replay.compare.matching import PARTS, Row, settings_of, text_of
from replay.errors import ExperimentError
from replay.registry import nearest

PLACES = ("trace", "mode", "policy", "run")


@dataclass(frozen=True, slots=True)
class Breach:
    """A cell of a run in which a check fails."""

    row: Row
    side: int
    value: float
    bound: float
    baseline: float | None
    ratio: float | None
    sight: Sight | None


@dataclass(frozen=True, slots=True)
class Undecided:
    """A cell of a run that cannot be judged, and why."""

    row: Row
    side: int
    why: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a check: how many cells were judged, in how many of them a breach was not seen, and what failed.

    `lone` cells are of one run only, and were not judged.
    """

    check: Check
    judged: int
    unseen: int
    breaches: Sequence[Breach]
    undecided: Sequence[Undecided]
    lone: int = 0

    @property
    def passed(self) -> bool:
        return not self.breaches and not self.undecided


def judge(comparison: Comparison, check: Check, *, allow_invalid: bool = False) -> Outcome:
    """Judge every run but the baseline; of a single run, that one. ExperimentError when the check has no cell."""
    sides = list(comparison.others)
    if not sides:
        if check.bound.relative:
            raise ExperimentError(f"--fail-if {str(check)!r}: there is one run only, so nothing is the baseline")
        sides = [BASELINE]
    rows = [*comparison.matching.rows] if check.bound.relative else _all(comparison)
    _check_conditions(comparison, check)
    judged, unseen, breaches, undecided = 0, 0, [], []
    for side in sides:
        for row in rows:
            needed = (side, BASELINE) if check.bound.relative else (side,)
            if any(number not in row.places for number in needed):
                continue  # one run alone has it: it is listed, and there is nothing to hold it against
            if not all(_holds(comparison, row, side, condition) for condition in check.conditions):
                continue
            found = _judged(comparison, check, row, side, needed, allow_invalid=allow_invalid)
            judged += 1
            if isinstance(found, Breach):
                breaches.append(found)
            elif isinstance(found, Undecided):
                undecided.append(found)
            else:
                unseen += found
    if not judged:
        raise ExperimentError(f"--fail-if {str(check)!r}: there is no cell to judge by it")
    lone = [
        row
        for row in (comparison.matching.lone if check.bound.relative else ())
        if all(_holds(comparison, row, next(iter(row.places)), condition) for condition in check.conditions)
    ]
    return Outcome(check, judged, unseen, breaches, undecided, len(lone))


def _all(comparison: Comparison) -> list[Row]:
    return [*comparison.matching.rows, *comparison.matching.lone]


def _judged(
    comparison: Comparison, check: Check, row: Row, side: int, needed: Sequence[int], *, allow_invalid: bool
) -> Breach | Undecided | int:
    """A breach; or why it cannot be told; or whether there would be one, had the difference been seen."""
    figure = check.figure
    for number in needed:
        place = row.places[number]
        if place.doubt is not None and (place.arm is None or not allow_invalid):
            return Undecided(row, side, f"it is {place.doubt}, in {comparison.names[number]}")
    value = comparison.value(row, side, figure)
    baseline = comparison.value(row, BASELINE, figure) if check.bound.relative else None
    for number, known in zip(needed, (value, baseline), strict=False):
        if known is None:
            return Undecided(row, side, f"{figure.name} is not defined in {comparison.names[number]}")
    bound = check.bound.value(baseline)
    assert value is not None
    assert bound is not None
    if not check.breached(value, bound):
        return 0
    seen = comparison.sight(row, side, figure) if check.bound.relative else None
    if check.seen and seen is not None and seen.verdict != "seen":
        if seen.verdict == "not seen":
            return 1
        return Undecided(row, side, f"{figure.name} is in breach, and whether that is seen cannot be told: {seen.why}")
    ratio = comparison.ratio(row, side, figure) if check.bound.relative else None
    return Breach(row, side, value, bound, baseline, ratio, seen)


def _holds(comparison: Comparison, row: Row, side: int, condition: Condition) -> bool:
    return (condition.value in _names(comparison, row, side, condition.name)) == condition.equal


def _names(comparison: Comparison, row: Row, side: int, name: str) -> set[str]:
    """What a cell is called under `trace`, `mode`, `policy`, `run` or the name of a setting."""
    cell = row.places[side].cell if side in row.places else row.cell
    if name == "run":
        run = comparison.sides[side]
        return {run.label, str(run.run.folder), run.run.folder.resolve().name}
    if name in PLACES:
        return {
            "trace": {row.trace, cell.trace},
            "mode": {cell.mode, row.setting},
            "policy": {cell.policy, row.policy},
        }[name]
    return {text_of(settings_of(cell, part)[name]) for part in PARTS if name in settings_of(cell, part)}


def _check_conditions(comparison: Comparison, check: Check) -> None:
    """ExperimentError when a condition names what no cell has: a slip of the pen must not judge nothing."""
    cells = [(row, side) for row in _all(comparison) for side in row.places]
    for condition in check.conditions:
        values = {each for row, side in cells for each in _names(comparison, row, side, condition.name)}
        if not values:
            settings = {name for row, _ in cells for part in PARTS for name in settings_of(row.cell, part)}
            help_ = nearest(condition.name, [*PLACES, *sorted(settings)])
            raise ExperimentError(f"--fail-if {str(check)!r}: no cell has {condition.name!r}; {help_}")
        if condition.value not in values:
            help_ = nearest(condition.value, sorted(values))
            raise ExperimentError(
                f"--fail-if {str(check)!r}: no cell has {condition.name} {condition.value!r}; {help_}"
            )

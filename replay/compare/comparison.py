"""All that a comparison is written from: the sides, the cells that match, their figures, and what else differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from replay.compare.circumstances import Fact, differing
from replay.compare.differences import Sight, Versus, sights
from replay.compare.figures import Figure, find_figure
from replay.compare.matching import PARTS, Matching, Row, match, settings_of
from replay.compare.sides import Figures, Side, judge_of, measure_sides, read_sides
from replay.errors import ExperimentError
from replay.metrics.notation import enumerate_words, several, whole
from replay.registry import nearest
from replay.traces.wording import named

BASELINE = 0
"""The number of the side that the others are held against: it is always the first."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """`figures` are those that are shown; any other may be asked for too."""

    sides: Sequence[Side]
    matching: Matching
    figures: Sequence[Figure]
    facts: Sequence[Fact]
    notes: Sequence[str]
    measured: Figures
    _sights: dict[tuple[int, int, Figure], Sight] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        return [side.label for side in self.sides]

    @property
    def names(self) -> list[str]:
        """The labels as a line of text has them."""
        return [named(label) for label in self.labels]

    @property
    def others(self) -> range:
        """The numbers of the sides that are held against the baseline."""
        return range(1, len(self.sides))

    def value(self, row: Row, side: int, figure: Figure) -> float | None:
        """The mean over the repeats; None where the run has no such cell, or the figure is not defined there."""
        place = row.places.get(side)
        if place is None or place.arm is None:
            return None
        return self.measured.values.value(place.arm, figure.metric, figure.statistic)

    def ratio(self, row: Row, side: int, figure: Figure) -> float | None:
        """The value over the baseline's; None where one of them is not defined, or the baseline's is zero."""
        base, value = self.value(row, BASELINE, figure), self.value(row, side, figure)
        return None if value is None or not base else value / base

    def sight(self, row: Row, side: int, figure: Figure) -> Sight:
        """Whether it may be said that the side differs from the baseline there, with all else that the table shows."""
        key = (id(row), side, figure)
        if key not in self._sights:
            self._look([*self.figures] if figure in self.figures else [figure])
        return self._sights[key]

    def _look(self, figures: Sequence[Figure]) -> None:
        """Decide on these figures of every cell of every run, as one family."""
        rows = [*self.matching.rows, *self.matching.lone]
        places = [(row, side, figure) for row in rows for side in self.others for figure in figures]
        asked = [
            ((id(row), side, figure), Versus(figure, row.places[BASELINE], row.places[side]))
            for row, side, figure in places
            if BASELINE in row.places and side in row.places
        ]
        arms = [[row.places[side].arm for row in rows if side in row.places] for side in range(len(self.sides))]
        peers = [[arm for arm in found if arm is not None] for found in arms]
        seed = int(self.sides[BASELINE].run.manifest.get("seed") or 0)
        told = sights([versus for _, versus in asked], peers, self.measured, seed)
        missing = Sight("cannot be told", "only one of them has the cell")
        self._sights.update({(id(row), side, figure): missing for row, side, figure in places})
        self._sights.update({key: sight for (key, _), sight in zip(asked, told, strict=True)})


def compare_runs(
    folders: Sequence[Path],
    baseline: str | None = None,
    names: Sequence[str] = (),
    across: Sequence[str] = (),
    asked_for: Sequence[Figure] = (),
) -> Comparison:
    """Read and measure runs, and match their cells. `baseline` is one of them, by path or label, or one more.

    `names` are the figures to show, or else the usual ones; `asked_for` are shown in any case. ExperimentError when
    there is nothing to compare, or a name is unknown.
    """
    chosen = [find_figure(name) for name in names]
    sides = read_sides(_ordered(folders, baseline))
    _check_settings(sides, across)
    matching = match(sides, across)
    figures = list(dict.fromkeys([*(chosen or usual(sides, matching)), *asked_for]))
    measured = measure_sides(sides)
    comparison = Comparison(sides, matching, figures, differing(sides, matching), (), measured)
    return replace(comparison, notes=[*matching.notes, *_notes(comparison)])


def _ordered(folders: Sequence[Path], baseline: str | None) -> list[Path]:
    """The folders, the baseline first."""
    if baseline is None:
        return list(folders)
    path = Path(baseline)
    named = [folder for folder in folders if folder.resolve() == path.resolve()]
    if not named and not path.is_dir():
        named = [folder for folder in folders if folder.resolve().name == baseline]
    if len(named) > 1:
        raise ExperimentError(f"--baseline {baseline}: several of the runs are called so; give the folder")
    if not named and not path.is_dir():
        raise ExperimentError(f"--baseline {baseline}: neither one of the runs nor a folder")
    first = named[0] if named else path
    return [first, *(folder for folder in folders if folder not in named)]


def _check_settings(sides: Sequence[Side], across: Sequence[str]) -> None:
    known = {name for side in sides for cell in side.run.cells for part in PARTS for name in settings_of(cell, part)}
    for name in across:
        if name not in known:
            raise ExperimentError(f"--across {name}: no cell has such a setting; {nearest(name, known)}")


def usual(sides: Sequence[Side], matching: Matching) -> list[Figure]:
    """What is shown unless it is said: latency as a client sees it, throughput, and goodput where there are goals."""
    padded = any(row.cell.padded for row in matching.rows)
    names = ["ttft_p50", "ttft_p99", *(["ttft_delivered_p99"] if padded else []), "tpot_p50", "output_throughput"]
    return [find_figure(name) for name in [*names, *(["goodput"] if judge_of(sides).run.goals.any else [])]]


def _notes(comparison: Comparison) -> list[str]:
    """What must be said beside the figures."""
    notes = []
    sides = comparison.sides
    kinds = {cell.simulated for side in sides for cell in side.run.recorded}
    if len(kinds) > 1:
        notes.append(
            "simulated figures stand beside measured ones: the simulated come from a cost model on a virtual clock, "
            "so a difference is the model's as much as the run's"
        )
    if len({side.run.goals for side in sides}) > 1:
        notes.append(f"goals differ: every run is judged by those of {named(judge_of(sides).label)}")
    if len({side.run.service for side in sides}) > 1:
        notes.append(f"service is weighted as in {comparison.names[BASELINE]} everywhere")
    return notes + _doubts(comparison) + _counts(comparison)


def _doubts(comparison: Comparison) -> list[str]:
    """Cells whose figures are not to be relied on, and repeats that were left out."""
    notes = []
    for number, side in enumerate(comparison.sides):
        reasons: dict[str, list[str]] = {}
        for row in (*comparison.matching.rows, *comparison.matching.lone):
            place = row.places.get(number)
            if place is not None and place.doubt is not None:
                reasons.setdefault(place.doubt, []).append(label(comparison, row))
            if place is not None and place.left_out:
                reasons.setdefault("some repeats partial, left out", []).append(label(comparison, row))
        notes += [f"{named(side.label)}: {several(cells)}: {reason}" for reason, cells in reasons.items()]
    return notes


def _counts(comparison: Comparison) -> list[str]:
    """Where other numbers of requests completed: who answers fewer may look faster."""
    completed, told = Figure("completed", "count"), []
    for row in comparison.matching.rows:
        counts = {
            number: value
            for number, place in row.places.items()
            if not place.doubt and (value := comparison.value(row, number, completed)) is not None
        }
        if len(set(counts.values())) > 1:
            words = [f"{whole(count)} in {comparison.names[number]}" for number, count in counts.items()]
            told.append(f"{label(comparison, row)} ({enumerate_words(words)})")
    if not told:
        return []
    return [f"not the same number of requests completed, and latencies are of those that did: {several(told)}"]


def label(comparison: Comparison, row: Row) -> str:
    """A cell by its name: with its trace, where there are several."""
    trace = f"{named(row.trace)}: " if len(comparison.matching.traces) > 1 else ""
    return f"{trace}{row.setting}, {row.policy}"
